"""A database that goes away, comes back, never answers, or is not the right one."""
import os
import time

import psycopg2
import pytest

from checker import check, commit, committed, read_sink
from conftest import assert_in_order
from harness import PATIENCE, Gate, query, wait_until
from servers import OldServer, PortLock, SilentServer

WORKERS = 4
BATCH = 50
CANARY = "c4n4ry/p@ss?w0rd"
ENCODED = "c4n4ry%2Fp%40ss%3Fw0rd"  # as in a URL

COMMANDS = {
    "init": ["init"],
    "push": ["push", "--topic", "t", "x"],
    "run": ["run", "--sink", "null:", "--drain"],
    "pull": ["pull"],
    "ack": ["pull", "--ack", "1:1"],
    "status": ["status"],
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


# -- Away in the middle of a run -----------------------------------------------------------------

class Run:
    """A node with all its workers in the middle of a turn: the gate keeps them from sending."""

    def __init__(self, sluice, url, recorded, *flags):
        self.url = url
        self.ordered = "skip-locked" not in flags
        self.out = os.path.join(sluice.cwd, "out.jsonl")
        sluice.run("init", db=url)
        self.gate = Gate(self.out)
        commit(url, 1000)
        query(url, "UPDATE outbox SET entity_key = 'order:' || (id % 300)")  # enough for all workers
        self.messages = committed(url)
        # A transaction may not be longer; nor may it end, or be recalled, before the fault.
        lease = f"{max(10, 4 * PATIENCE):g}s" if "advisory" in flags else f"{max(2, 3 * PATIENCE):g}s"
        self.node = sluice.start("run", "--sink", f"file:{self.out}", "--workers", WORKERS, "--batch", BATCH, "--lease",
                                 lease, *flags, db=url, env=recorded.env)
        self.in_flight = wait_until(lambda: recorded.at_the_gate(self.node, WORKERS), 10, "all workers have a batch")

    def finish(self):
        """New messages are delivered too; the node is still the same process."""
        self.messages.update(commit(self.url, 1000))
        wait_until(lambda: is_empty(self.url), 40, f"everything is delivered by {self.node}")
        assert self.node.running
        self.node.term()
        self.node.wait(status=0)
        record = read_sink(self.out)
        summary = check(self.messages, record, in_flight=self.in_flight, least=2000)
        if self.ordered:
            assert_in_order(record)
        print(f"{len(self.in_flight)} messages in flight; {summary}")
        return summary


@pytest.mark.threads
@pytest.mark.parametrize("mode, strategy", [("fast", "lanes"), ("immediate", "lanes"), ("immediate", "guard"),
                                            ("immediate", "advisory"), ("immediate", "skip-locked")])
def test_restarted_while_messages_are_in_flight(sluice, own_pg, recorded, mode, strategy):
    run = Run(sluice, own_pg.new_database(), recorded, "--strategy", strategy)
    own_pg.restart(mode)
    run.gate.open()
    run.node.wait_log("trying again")
    summary = run.finish()
    assert len(run.in_flight) > WORKERS and summary.duplicates <= len(run.in_flight)
    lost = ("connection lost", "terminating connection", "the connection is gone")
    assert any(text in run.node.stderr() for text in lost)


def test_crashed_and_away_for_a_while(sluice, own_pg, recorded):
    """It is waited for, and found again."""
    run = Run(sluice, own_pg.new_database(), recorded)
    own_pg.kill()
    run.gate.open()
    run.node.wait_log("trying again")
    own_pg.start()
    run.node.wait_log("turns go on")
    run.finish()


@pytest.mark.threads
@pytest.mark.parametrize("flags", [["--strategy", "skip-locked"], ["--strategy", "skip-locked", "--hold", "transaction"],
                                   ["--strategy", "advisory"], ["--strategy", "guard"], ["--strategy", "lanes"]],
                         ids=lambda flags: flags[-1])
def test_sessions_terminated(sluice, pgdb, recorded, flags):
    run = Run(sluice, pgdb, recorded, *flags)
    sessions = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sluice'"
    wait_until(lambda: query(pgdb, f"SELECT count(*) {sessions}") == [(WORKERS + 1,)], 30,
               "the janitor, which has nothing to do, lets its session go")
    ended = query(pgdb, f"SELECT count(pg_terminate_backend(pid)) {sessions}")
    assert ended == [(WORKERS + 1,)], "of the workers, and of the heartbeat"
    run.gate.open()
    run.node.wait_log("trying again")
    summary = run.finish()
    assert len(run.in_flight) > WORKERS and summary.duplicates <= len(run.in_flight)


def test_an_idle_node_survives_a_restart(sluice, own_pg):
    url = own_pg.new_database()
    out = os.path.join(sluice.cwd, "out.jsonl")
    sluice.run("init", db=url)
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "50ms", db=url)
    node.wait_log("node started")
    own_pg.restart("fast")
    messages = commit(url, 100)
    wait_until(lambda: is_empty(url), 20, "messages after the restart")
    assert check(messages, read_sink(out), least=100).duplicates == 0
    node.term()
    node.wait(status=0)


def test_term_while_the_database_is_away(sluice, own_pg):
    url = own_pg.new_database()
    sluice.run("init", db=url)
    node = sluice.start("run", "--sink", "null:", "--poll", "50ms", db=url)
    node.wait_log("node started")
    own_pg.kill()
    node.wait_log("trying again")
    node.term()
    node.wait(10, status=0)


# -- Never there ---------------------------------------------------------------------------------

def assert_unreachable(done, *words):
    """A sentence about the database on standard error, and nothing on standard output."""
    assert done.stdout == ""
    assert done.stderr.startswith("sluice ") and "postgres: " in done.stderr
    for word in words:
        assert word in done.stderr


@every_command
def test_silent_server(sluice, command):
    with SilentServer() as server:
        started = time.monotonic()
        done = sluice.run(*command, "--connect-timeout", "500ms", db=server.url(), check=3)
        assert time.monotonic() - started < 0.5 + 2 * PATIENCE
        assert_unreachable(done, "does not answer", str(server.port), "connect_timeout")
        assert server.connections == 1


@every_command
def test_connection_refused(sluice, command):
    lock = PortLock()
    done = sluice.run(*command, db=f"postgresql://x@127.0.0.1:{lock.port}/x", check=3)
    assert_unreachable(done, "Connection refused", str(lock.port))
    lock.release()


@every_command
def test_unknown_host(sluice, command):
    done = sluice.run(*command, db="postgresql://x@no-such-host.invalid/x", check=3)
    assert_unreachable(done, "no-such-host.invalid")


@every_command
def test_nonexistent_database(sluice, pg, command):
    done = sluice.run(*command, db=pg.url("no_such_database"), check=3)
    assert_unreachable(done, 'database "no_such_database" does not exist')


@every_command
def test_nonexistent_role(sluice, pg, command):
    done = sluice.run(*command, db=f"postgresql://nobody_here@127.0.0.1:{pg.port}/postgres", check=3)
    assert_unreachable(done, 'role "nobody_here" does not exist')


@every_command
def test_server_that_is_too_old(sluice, command):
    with OldServer("12.3") as server:
        done = sluice.run(*command, db=server.url(), check=1)
        assert_unreachable(done, "12.3", "PostgreSQL 13 or newer")
        assert server.asked == []


@every_command
def test_full_server(sluice, pg, command):
    """No connection left for this role: not our fault, and not for ever."""
    if "crowd" not in pg.sql("SELECT rolname FROM pg_roles"):
        pg.sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    done = sluice.run(*command, db=f"postgresql://crowd@127.0.0.1:{pg.port}/postgres", check=3)
    assert_unreachable(done, "too many connections")


def test_a_standby_is_refused(sluice, own_pg):
    url = own_pg.new_database()
    sluice.run("init", db=url)
    name = url.rpartition("/")[2]
    standby = own_pg.standby()
    for command in COMMANDS.values():
        done = sluice.run(*command, db=standby.url(name), check=3)
        assert_unreachable(done, "is a standby", str(standby.port), "hint: ")
    both = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{own_pg.port}/{name}"
    sluice.run("push", "--topic", "t", "1", db=both)
    assert query(url, "SELECT topic FROM outbox") == [("t",)]

    # The node follows a failover by itself, if it knows both.
    out = os.path.join(sluice.cwd, "out.jsonl")
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "50ms", db=both)
    wait_until(lambda: is_empty(url), 10, "the first message")
    # Only what has reached the standby survives.
    wait_until(lambda: query(standby.url(name), "SELECT count(*) FROM outbox") == [(0,)], 10, "replication")
    own_pg.kill()
    standby.promote()
    messages = commit(standby.url(name), 100)
    wait_until(lambda: is_empty(standby.url(name)), 30, "messages on the new primary")
    node.term()
    node.wait(status=0)
    record = read_sink(out)
    del record[0]
    assert check(messages, record, least=100).duplicates == 0


# -- Secrets -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def guarded(pg):
    """A role that needs a password; returns the URL without it, and the role's name."""
    pg.sql(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{CANARY}'")
    path = os.path.join(pg.data, "pg_hba.conf")
    with open(path) as f:
        rest = f.read()
    with open(path, "w") as f:
        f.write("host all guarded 127.0.0.1/32 scram-sha-256\n" + rest)
    pg.sql("SELECT pg_reload_conf()")

    def refused():
        try:
            psycopg2.connect(f"postgresql://guarded@127.0.0.1:{pg.port}/postgres").close()
        except psycopg2.OperationalError:
            return True
    wait_until(refused, 10, "the password is asked for")
    return pg


def assert_no_canary(*texts):
    for text in texts:
        for part in (CANARY, ENCODED, "c4n4ry", "w0rd"):
            assert part not in text


@every_command
def test_wrong_password(sluice, guarded, command):
    done = sluice.run(*command, db=f"postgresql://guarded:wrong{ENCODED}@127.0.0.1:{guarded.port}/postgres", check=3)
    assert_unreachable(done, "password authentication failed", "guarded")
    assert_no_canary(done.stdout, done.stderr)


def conninfos(pg, dbname):
    return [
        f"postgresql://guarded:{ENCODED}@127.0.0.1:{pg.port}/{dbname}",
        f"postgresql://127.0.0.1:{pg.port}/{dbname}?user=guarded&password={ENCODED}",
        f"host=127.0.0.1 port={pg.port} dbname={dbname} user=guarded password={CANARY}",
        f"host=127.0.0.1 port={pg.port} dbname={dbname} user=guarded password = '{CANARY}'",
    ]


@pytest.mark.parametrize("form", range(4))
def test_the_right_password_is_never_shown(sluice, guarded, form):
    dbname = guarded.new_database().rpartition("/")[2]
    url = conninfos(guarded, dbname)[form]
    texts = []

    def run(*args, **kw):
        done = sluice.run(*args, **kw)
        texts.extend([done.stdout, done.stderr])

    run("init", db=url)
    run("push", "--topic", "t", "1", db=url)
    run("status", "--json", env={"SLUICE_DB": url})
    run("pull", "--auto-ack", env={"DATABASE_URL": url})
    run("config", "show", db=url)
    run("config", "show", "--json", db=url)
    run("config", "check", db=url)
    run("run", "--sink", "null:", "--drain", "--log-level", "debug", db=url)
    run("run", "--sink", "null:", "--drain", "--log-format", "json", db=url)
    run("run", "--sink", "file:/nowhere/at/all", db=url, check=1)
    run("status", "--table", "missing", db=url, check=1)
    run("status", db=url.replace(dbname, "no_such_database"), check=3)
    assert_no_canary(*texts)


@pytest.mark.parametrize("url", [
    f"postgresql://u:{CANARY}@h/x?nonsense={CANARY}",
    f"postgresql://u:{CANARY}@h:port/x",
    f"postgresql://u:{ENCODED}%zz@h/x",
    f"host=h password='{CANARY}",
    f"host=h password={CANARY} {CANARY}",
    f"host=h password={CANARY} nonsense={CANARY}",
    f"host=h pasword={CANARY}",
    f"postgres://[{CANARY}@h/x",
    f"mysql://u:{CANARY}@h/x",
    f"u:{CANARY}@h/x",
    f"nonsense://{CANARY}",
    "postgresql://u:c4n4ry?w0rd@h.invalid/x",
    "postgresql://u:c4n4ry#w0rd@h.invalid/x",
    "postgresql://u:c4n4ry/w0rd@h.invalid/x",
    "postgresql://u:c4n4ry@w0rd@h.invalid/x",
])
def test_a_malformed_url_is_not_shown(sluice, url):
    for command in COMMANDS.values():
        done = sluice.run(*command, db=url, check=False)
        assert done.returncode in (1, 2, 3), done
        assert done.stderr.count("\n") <= 3, "a sentence and a hint"
        assert_no_canary(done.stdout, done.stderr)


@pytest.mark.parametrize("url", [
    f"postgresql://u:{ENCODED}@h:port/x",
    f"host=h password='{CANARY}",
    f"mysql://u:{ENCODED}@h/x",
    f"postgresql://u:{CANARY}@h/x",
    f"host=h password={CANARY} {CANARY}",
    f"host=h pasword={CANARY}",
    f"u:{CANARY}@h/x",
])
def test_a_malformed_url_is_masked(sluice, url):
    """Whoever is to find out what is wrong with it asks for it."""
    for flags in ([], ["--json"]):
        done = sluice.run("config", "show", *flags, db=url)
        assert "***" in done.stdout
        assert_no_canary(done.stdout, done.stderr)


def test_secrets_from_files(sluice, guarded, tmp_path):
    url = guarded.new_database()
    path = tmp_path / "secret"
    path.write_text(conninfos(guarded, url.rpartition("/")[2])[0] + "\n")
    env = {"SLUICE_DB_FILE": str(path)}
    sluice.run("init", env=env)
    done = sluice.run("config", "show", env=env)
    assert "guarded:***@127.0.0.1" in done.stdout
    assert_no_canary(done.stdout, done.stderr)
    assert query(url, "SELECT count(*) FROM outbox") == [(0,)]


def test_pg_variables_and_password_file(sluice, guarded, tmp_path):
    """What libpq knows is honoured: `postgresql:` takes all of it from there."""
    name = guarded.new_database().rpartition("/")[2]
    path = tmp_path / "pgpass"
    path.write_text(f"127.0.0.1:{guarded.port}:*:guarded:{CANARY}\n")
    path.chmod(0o600)
    env = {"PGHOST": "127.0.0.1", "PGPORT": str(guarded.port), "PGUSER": "guarded", "PGDATABASE": name,
           "PGPASSFILE": str(path)}
    sluice.run("init", db="postgresql:", env=env)
    sluice.run("status", db="postgresql://", env=env)
