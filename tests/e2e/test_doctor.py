"""`sluice doctor`: what is fine is called ok; each fault is made for real, named, and mended by what it says."""
import fcntl
import json
import os
import pty
import re
import struct
import termios

import psycopg2
import pytest

from harness import connect, is_postgres, query, wait_until
from servers import Postgres, TransactionPooler

BOTH = {"schema", "columns", "indexes", "library", "nodes", "keys", "waiting"}
PG = BOTH | {"grants", "server", "durability", "pooler", "clock", "locks", "connections", "transactions", "prepared",
             "replication", "autovacuum", "tables"}
SQLITE = BOTH | {"file", "journal", "pages"}
DAYS_AGO = "2020-01-01 00:00:00.000"


@pytest.fixture(scope="module")
def server():
    """As it should be: the one of the other tests has fsync off. Nobody cleans up while a test looks at what is to be
    cleaned up."""
    with Postgres(fsync=True, settings={"max_prepared_transactions": 5, "autovacuum_naptime": "1h"}) as s:
        yield s


@pytest.fixture
def pgbox(server, sluice):
    url = server.new_database()
    sluice.run("init", db=url)
    yield url
    server.drop_database(url)


@pytest.fixture(params=["postgres", "sqlite"])
def box(request):
    return request.getfixturevalue("pgbox" if request.param == "postgres" else "litebox")


def doctor(sluice, db, *flags, env=None):
    """The findings of --json by check, whose shape never changes; the status says whether one is bad."""
    done = sluice.run("doctor", "--json", *flags, db=db, check=False, env=env)
    assert done.stderr == ""
    got = json.loads(done.stdout)
    assert set(got) == {"table", "state", "ok", "warn", "bad", "unknown", "findings"}
    states = [f["state"] for f in got["findings"]]
    for state in ("ok", "warn", "bad", "unknown"):
        assert got[state] == states.count(state)
    assert got["state"] == next((s for s in ("bad", "warn", "unknown") if s in states), "ok")
    assert done.returncode == (1 if "bad" in states else 0)
    checks = {}
    for f in got["findings"]:
        assert set(f) == {"state", "check", "found", "do"}
        assert (f["do"] is None) == (f["state"] == "ok") or f["state"] == "unknown"
        checks.setdefault(f["check"], []).append(f)
    return checks


def only(checks, *but):
    """Nothing but these is wrong. What this machine has for libraries is its own business."""
    wrong = {c for c, all in checks.items() for f in all if f["state"] != "ok"} - {"library"}
    assert wrong == set(but), [f for c in wrong - set(but) for f in checks[c]]


def one(checks, check):
    """The finding of a check that has one."""
    finding, = checks[check]
    return finding


# -- As it should be ---------------------------------------------------------------------------------

def test_a_healthy_database(sluice, box):
    checks = doctor(sluice, box, "--deep")
    only(checks)
    assert set(checks) == (PG if is_postgres(box) else SQLITE | {"integrity"})
    assert one(checks, "schema")["found"] == "table outbox, version 5, 64 lanes"


def test_a_healthy_node(sluice, box):
    sluice.start("run", "--sink", "null:", "--node", "n1", db=box)
    wait_until(lambda: "lanes" in doctor(sluice, box) and one(doctor(sluice, box), "lanes")["state"] == "ok", 20,
               "a node that owns all lanes")
    checks = doctor(sluice, box)
    only(checks)
    assert one(checks, "nodes")["found"] == "1 live"


def test_other_names(sluice, server, tmp_path):
    """Mapped columns, and a table in a schema."""
    conf = ["--columns", "lane=bucket,held=aside,entity_key=part,available_at=not_before,id=nr"]
    url = server.new_database()
    query(url, "CREATE SCHEMA app")
    for db, name in ((url, "app.Inbox"), (f"sqlite:{tmp_path}/other.db", "Inbox")):
        sluice.run("init", "--table", name, *conf, db=db)
        only(doctor(sluice, db, "--table", name, *conf))
        schema = '"app".' if is_postgres(db) else ""
        query(db, f'DROP INDEX {schema}"Inbox_ix_lane"')
        broken = doctor(sluice, db, "--table", name, *conf)
        only(broken, "indexes")
        assert '"bucket", "nr"' in one(broken, "indexes")["do"]
        query(db, one(broken, "indexes")["do"])
        only(doctor(sluice, db, "--table", name, *conf))


@pytest.mark.parametrize("schema", ["", "app."])
def test_an_adopted_table_without_an_index_on_its_id(sluice, server, schema):
    """init makes one; who has dropped it is told, also of a table that is not in the search path."""
    url = server.new_database()
    query(url, "CREATE SCHEMA app")
    query(url, f"CREATE TABLE {schema}box (key uuid PRIMARY KEY DEFAULT gen_random_uuid(), nr bigint GENERATED ALWAYS AS IDENTITY,"
               " topic text NOT NULL, entity_key text, payload bytea)")
    conf = ["--table", f"{schema}box", "--columns", "id=nr"]
    sluice.run("init", *conf, db=url)
    only(doctor(sluice, url, *conf))
    query(url, f"DROP INDEX {schema}box_ix_id")
    found = doctor(sluice, url, *conf)
    only(found, "indexes")
    assert one(found, "indexes")["found"] == f"unique index on nr of {schema}box is missing"
    assert one(found, "indexes")["do"].startswith("CREATE UNIQUE INDEX")
    query(url, f"INSERT INTO {schema}box (nr, topic) OVERRIDING SYSTEM VALUE VALUES (7, 't'), (7, 't')")
    with pytest.raises(psycopg2.errors.UniqueViolation):
        query(url, f"CREATE UNIQUE INDEX CONCURRENTLY ON {schema}box (nr)")
    found = [f["found"] for f in doctor(sluice, url, *conf)["indexes"]]
    assert f"unique index on nr of {schema}box is missing" in found, "what a CONCURRENTLY leaves that failed is none"
    query(url, f"DELETE FROM {schema}box")
    query(url, f"DROP INDEX {schema}box_nr_idx")
    query(url, f"CREATE UNIQUE INDEX ON {schema}box (nr)")
    only(doctor(sluice, url, *conf))


def test_rows_with_the_same_id_are_not_adopted(sluice, server):
    url = server.new_database()
    query(url, "CREATE TABLE box (tenant int, id bigint, topic text NOT NULL, entity_key text, payload bytea, PRIMARY KEY (tenant, id))")
    query(url, "INSERT INTO box (tenant, id, topic) VALUES (1, 7, 't'), (2, 7, 't')")
    done = sluice.run("init", "--table", "box", db=url, check=False)
    assert done.returncode == 1
    assert "some rows of box have the same id: give each one of its own" in done.stderr
    query(url, "DELETE FROM box WHERE tenant = 2")
    sluice.run("init", "--table", "box", db=url)


@pytest.mark.parametrize("id_is", ["another column", "the primary key"])
def test_an_id_of_another_name_has_one_unique_index(sluice, server, id_is):
    """Whatever the column is that is called id there."""
    url = server.new_database()
    key = "PRIMARY KEY" if id_is == "the primary key" else ""
    other = "other uuid" if key else "id uuid PRIMARY KEY DEFAULT gen_random_uuid()"
    query(url, f"CREATE TABLE box ({other}, nr bigint GENERATED ALWAYS AS IDENTITY {key}, topic text NOT NULL, entity_key text,"
               " payload bytea)")
    conf = ["--table", "box", "--columns", "id=nr"]
    for _ in range(2):
        sluice.run("init", *conf, db=url)
    assert query(url, "SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
                      " WHERE i.indrelid = 'box'::regclass AND i.indisunique AND i.indpred IS NULL AND a.attname = 'nr'") == [(1,)]
    only(doctor(sluice, url, *conf))


def test_the_table_lines_up(sluice, box):
    query(box, "DROP INDEX outbox_ix_lane")
    lines = sluice.run("doctor", db=box, check=1).stdout.splitlines()
    heads = re.fullmatch(r"(  state +)(check +)(found +)what to do", lines[0])
    starts = [2, heads.end(1), heads.end(2), heads.end(3)]
    rows = lines[1:lines.index("")]
    for row in rows:
        for start in starts[1:]:
            assert len(row) <= start or row[start - 2:start] == "  "
        assert re.match(r"(ok|warn|bad|unknown) ", row[2:])
    bad, = [row for row in rows if row.startswith("  bad")]
    assert bad[starts[1]:].startswith("indexes") and bad[starts[2]:].startswith("outbox_ix_lane is missing")
    assert bad[starts[3]:].startswith("CREATE INDEX")
    assert re.fullmatch(r"1 bad, \d+ warn, 0 unknown, \d+ ok", lines[-1])


@pytest.mark.parametrize("width", [60, 80, 132])
def test_a_terminal(sluice, litebox, width):
    """Nothing is cut, and no line is longer than the terminal is wide."""
    query(litebox, "DROP INDEX outbox_ix_due")
    remedy = one(doctor(sluice, litebox), "indexes")["do"]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    sluice.start("doctor", db="sqlite:outbox.db", stdout=theirs).wait(status=1)
    text = os.read(ours, 65536).decode().replace("\r", "")
    os.close(ours)
    os.close(theirs)
    assert max(map(len, text.splitlines())) <= width
    assert remedy in re.sub(r"\s+", " ", text)


def test_wrong_use(sluice, litebox, tmp_path):
    assert "takes no argument 'x'" in sluice.run("doctor", "x", db=litebox, check=2).stderr
    assert "does not exist" in sluice.run("doctor", db=f"sqlite:{tmp_path}/none.db", check=3).stderr
    assert not (tmp_path / "none.db").exists()
    sluice.run("doctor", db="postgresql://127.0.0.1:1/x", check=3)


# -- What init made ----------------------------------------------------------------------------------

def test_no_tables(sluice, server, tmp_path):
    lite = f"sqlite:{tmp_path}/empty.db"
    query(lite, "PRAGMA journal_mode = WAL")
    for db in (server.new_database(), lite):
        checks = doctor(sluice, db)
        only(checks, "schema")
        assert one(checks, "schema") == {"state": "bad", "check": "schema", "found": "table outbox is not there",
                                         "do": "run 'sluice init' once"}
        assert "columns" not in checks
        query(db, "CREATE TABLE outbox (id integer PRIMARY KEY)")
        assert "was not made by sluice init" in one(doctor(sluice, db), "schema")["found"]


def test_other_versions(sluice, box):
    query(box, "UPDATE outbox_meta SET value = '1' WHERE name = 'schema_version'")
    schema = one(doctor(sluice, box), "schema")
    assert schema["state"] == "bad" and "version 1" in schema["found"] and "sluice init" in schema["do"]
    query(box, "UPDATE outbox_meta SET value = '99' WHERE name = 'schema_version'")
    assert "schema version 99" in sluice.run("doctor", db=box, check=4).stderr


def test_missing_columns_and_tables(sluice, box):
    query(box, "ALTER TABLE outbox_keys DROP COLUMN reason")
    query(box, "DROP TABLE outbox_claims")
    checks = doctor(sluice, box)
    columns = one(checks, "columns")
    assert (columns["state"], columns["found"]) == ("bad", "missing: outbox_keys.reason, outbox_claims")
    assert one(checks, "keys")["state"] == "unknown"  # and it went on with the others
    assert one(checks, "waiting")["state"] == "ok"


def test_missing_indexes(sluice, box):
    """What is advised makes them again."""
    names = [r[0] for r in query(box, "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'outbox_ix_%'"
                                 if is_postgres(box) else
                                 "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'outbox_ix_%'")]
    assert len(names) >= 5
    for name in names:
        query(box, f"DROP INDEX {name}")
    checks = doctor(sluice, box)
    only(checks, "indexes")
    assert sorted(f["found"] for f in checks["indexes"]) == sorted(f"{name} is missing" for name in names)
    for f in checks["indexes"]:
        query(box, f["do"])
    only(doctor(sluice, box))


def test_an_invalid_index(sluice, pgbox):
    query(pgbox, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_ix_due'::regclass")
    query(pgbox, "CREATE INDEX left_over ON outbox_dead (topic)")
    query(pgbox, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'left_over'::regclass")
    query(pgbox, "ALTER TABLE outbox_lanes DROP CONSTRAINT outbox_lanes_pkey")
    checks = doctor(sluice, pgbox)
    only(checks, "indexes")
    assert sorted(f["found"] for f in checks["indexes"]) == [
        "left_over is invalid", "outbox_ix_due is invalid", "primary key of outbox_lanes is missing"]
    query(pgbox, "REINDEX INDEX CONCURRENTLY outbox_ix_due")
    query(pgbox, "DROP INDEX left_over")
    query(pgbox, "ALTER TABLE outbox_lanes ADD PRIMARY KEY (lane)")
    only(doctor(sluice, pgbox))


@pytest.mark.parametrize("strategy, delivery", [
    *((name, "at-least-once") for name in ("lanes", "guard", "advisory", "skip-locked")), ("lanes", "at-most-once"),
    ("advisory", "at-most-once")])
def test_grants(sluice, server, pgbox, strategy, delivery):
    """All that is missing is named, is enough for a node, and what is taken away again is named again."""
    role = "Relay-" + pgbox.rpartition("/")[2] + strategy
    query(pgbox, f'CREATE ROLE "{role}" LOGIN')
    query(pgbox, f'GRANT pg_read_all_stats TO "{role}"')
    url = pgbox.replace("postgres@", role + "@")
    with open(os.path.join(sluice.cwd, "s.yaml"), "w", encoding="utf-8") as f:
        f.write(f"strategy: {strategy}\ndelivery: {delivery}\n")
    flags = ["-c", "s.yaml"]
    checks = doctor(sluice, url, *flags)
    assert one(checks, "schema")["state"] == one(checks, "waiting")["state"] == one(checks, "locks")["state"] == "unknown"
    assert (one(checks, "grants")["state"], one(checks, "server")["state"]) == ("bad", "ok")
    for statement in one(checks, "grants")["do"].split("; "):
        query(pgbox, statement)
    only(doctor(sluice, url, *flags))
    sluice.run("run", *flags, "--sink", "null:", "--drain", db=url)
    kept = doctor(sluice, url, *flags, env={"SLUICE_RETENTION": "1h"})
    assert one(kept, "grants")["do"] == f'GRANT SELECT, INSERT, UPDATE, DELETE ON "outbox_sent" TO "{role}"'
    query(pgbox, one(kept, "grants")["do"])
    only(doctor(sluice, url, *flags, env={"SLUICE_RETENTION": "1h"}))
    sluice.run("run", *flags, "--sink", "null:", "--drain", "--retention", "1h", db=url)
    query(pgbox, f'REVOKE UPDATE, DELETE ON outbox FROM "{role}"')
    query(pgbox, f'REVOKE USAGE ON SEQUENCE outbox_epoch FROM "{role}"')
    grants = one(doctor(sluice, url, *flags), "grants")
    assert grants["do"] == (f'GRANT UPDATE, DELETE ON "outbox" TO "{role}"; '
                            f'GRANT USAGE ON SEQUENCE "outbox_epoch" TO "{role}"')
    assert f"role {role} lacks rights that a node of strategy {strategy} needs" == grants["found"]


# -- The server --------------------------------------------------------------------------------------

def test_durability(sluice, pg, pgdb, pgbox):
    """The server of the other tests is not safe; and one database may be less so than the server."""
    sluice.run("init", db=pgdb)
    checks = doctor(sluice, pgdb)
    only(checks, "durability")
    assert [f["do"] for f in checks["durability"]] == ["fsync = on, then reload", "full_page_writes = on, then reload"]
    query(pgbox, f"ALTER DATABASE {pgbox.rpartition('/')[2]} SET synchronous_commit = off")
    durability = one(doctor(sluice, pgbox), "durability")
    assert durability["state"] == "warn" and "synchronous_commit is off" in durability["found"]


def test_a_pooler(sluice, server, pgbox):
    """Twice: nothing that the first left behind is in the way of the second."""
    with TransactionPooler(server) as pooler:
        url = pooler.url(pgbox.rpartition("/")[2])
        for _ in range(2):
            checks = doctor(sluice, url)
            only(checks, "pooler")
            assert one(checks, "pooler")["state"] == "bad"
            assert "a pooler in transaction mode" in one(checks, "pooler")["found"]
            assert "directly" in one(checks, "pooler")["do"]
        busy = connect(url)
        busy.cursor().execute("BEGIN")  # whoever else uses it makes no difference
        assert one(doctor(sluice, url), "pooler")["state"] == "bad"
        busy.close()
    only(doctor(sluice, pgbox))


def test_clocks_that_differ(sluice, pgbox):
    """A function of the same name in front of the server's own stands for a clock that is wrong."""
    query(pgbox, "CREATE SCHEMA wrong")
    query(pgbox, f"ALTER DATABASE {pgbox.rpartition('/')[2]} SET search_path = wrong, pg_catalog, public")
    for by, state, text in (("1 second", "ok", "at most"), ("10 seconds", "warn", "s ahead of this machine's"),
                            ("-90 minutes", "bad", "behind this machine's")):
        query(pgbox, "CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
                     f"'SELECT pg_catalog.clock_timestamp() + interval ''{by}'''")
        clock = one(doctor(sluice, pgbox), "clock")
        assert clock["state"] == state and text in clock["found"]
    assert "NTP" in clock["do"]


def test_too_few_connections(sluice, pgbox):
    name = pgbox.rpartition("/")[2]
    query(pgbox, f"ALTER DATABASE {name} CONNECTION LIMIT 5")
    few = one(doctor(sluice, pgbox), "connections")
    assert few["state"] == "warn" and "a node with 4 workers needs 5" in few["found"]
    query(pgbox, f"ALTER DATABASE {name} CONNECTION LIMIT 1")
    wait_until(lambda: one(doctor(sluice, pgbox), "connections")["found"].startswith("0 of 1 left"), 20,
               "the test's own sessions are gone")
    none = one(doctor(sluice, pgbox), "connections")
    assert none["state"] == "bad" and "CONNECTION LIMIT" in none["do"]


def test_too_few_locks(sluice, pgbox):
    """Room for 64 * 105, of which a claim takes a sixteenth at most."""
    for name, workers in (("n1", 8), ("n2", 1)):
        sluice.start("run", "--strategy", "advisory", "--sink", "null:", "--node", name, "--workers", workers, db=pgbox)
        wait_until(lambda: name in sluice.run("workers", db=pgbox).stdout, 20, "a node")
        if name == "n1":
            assert one(doctor(sluice, pgbox), "locks")["state"] == "ok"
    locks = one(doctor(sluice, pgbox), "locks")
    assert locks["state"] == "warn" and "9 workers of strategy advisory" in locks["found"]
    assert "max_locks_per_transaction = " in locks["do"]


# -- What keeps dead rows alive ----------------------------------------------------------------------

def open_transaction(url, *statements):
    conn = connect(url)
    for sql in statements:
        conn.cursor().execute(sql)
    return conn


def test_an_old_snapshot(sluice, pgbox):
    url = pgbox + "?application_name=report"
    with open_transaction(url, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM outbox") as conn:
        pid = conn.info.backend_pid
        only(doctor(sluice, pgbox))  # it is young
        wait_until(lambda: one(doctor(sluice, pgbox, "--old", "10ms"), "transactions")["state"] == "bad", 20, "its age")
        old = one(doctor(sluice, pgbox, "--old", "10ms"), "transactions")
        assert re.match(rf"pid {pid} \(report, user postgres\) is idle in transaction, its transaction open for \d+\.\d s:"
                        r" keeps dead rows alive$", old["found"])
        assert "idle_in_transaction_session_timeout" in old["do"]
        query(pgbox, re.search(r"SELECT pg_terminate_backend\(\d+\)", old["do"]).group())
        wait_until(lambda: one(doctor(sluice, pgbox, "--old", "10ms"), "transactions")["state"] == "ok", 20, "its end")


def test_an_open_transaction(sluice, pgbox):
    """Without a snapshot it keeps nothing alive, and is a warning, however old."""
    conn = open_transaction(pgbox, "BEGIN", "SELECT 1")
    wait_until(lambda: one(doctor(sluice, pgbox, "--old", "1ms"), "transactions")["state"] == "warn", 20, "its age")
    conn.cursor().execute("UPDATE outbox_meta SET value = value")  # now it writes
    wait_until(lambda: one(doctor(sluice, pgbox, "--old", "1ms"), "transactions")["state"] == "bad", 20, "its age")
    conn.close()


def test_sessions_of_others_are_unknown(sluice, pgbox):
    role = "eye_" + pgbox.rpartition("/")[2]
    query(pgbox, f"CREATE ROLE {role} LOGIN")
    conn = open_transaction(pgbox, "BEGIN", "SELECT 1")
    url = pgbox.replace("postgres@", role + "@")
    wait_until(lambda: query(pgbox, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == [(2,)],
               20, "no session is left but this one")  # and who asks, which is gone a moment later
    wait_until(lambda: one(doctor(sluice, url, "--old", "1ms"), "transactions")["found"] ==
               "1 session of other roles cannot be seen", 20, "what is seen of it")
    assert one(doctor(sluice, url, "--old", "1ms"), "transactions")["state"] == "unknown"
    query(pgbox, f"GRANT pg_read_all_stats TO {role}")
    assert one(doctor(sluice, url, "--old", "1ms"), "transactions")["state"] == "warn"
    conn.close()


def test_a_prepared_transaction(sluice, pgbox):
    gid = "g_" + pgbox.rpartition("/")[2]
    open_transaction(pgbox, "BEGIN", "INSERT INTO outbox (topic, payload) VALUES ('t', '')",
                     f"PREPARE TRANSACTION '{gid}'").close()
    checks = doctor(sluice, pgbox)
    only(checks, "prepared")
    prepared = one(checks, "prepared")
    assert prepared["state"] == "warn" and f"'{gid}' of postgres" in prepared["found"]
    assert one(doctor(sluice, pgbox, "--old", "1ms"), "prepared")["state"] == "bad"
    query(pgbox, re.search(r"ROLLBACK PREPARED '\w+'", prepared["do"]).group())
    only(doctor(sluice, pgbox))


@pytest.mark.slow
def test_a_slot_that_nobody_reads(sluice, own_pg):
    """A standby tells what it still reads; when it is gone, its slot remembers."""
    sluice.run("init", db=own_pg.url())
    own_pg.sql("SELECT pg_create_physical_replication_slot('left_behind')")
    standby = own_pg.standby(settings={"primary_slot_name": "left_behind", "hot_standby_feedback": "on",
                                       "wal_receiver_status_interval": "1s"})
    wait_until(lambda: own_pg.sql("SELECT xmin FROM pg_replication_slots"), 60, "the standby's feedback")
    only(doctor(sluice, own_pg.url()))
    assert "this is a standby" in str(doctor(sluice, standby.url())["server"])
    standby.close()
    wait_until(lambda: own_pg.sql("SELECT NOT active FROM pg_replication_slots") == "t", 20, "its end")
    for _ in range(3):
        own_pg.sql("SELECT txid_current()")
    checks = doctor(sluice, own_pg.url())
    only(checks, "replication")
    slot = one(checks, "replication")
    assert slot["state"] == "bad" and "slot left_behind has no reader" in slot["found"]
    own_pg.sql(re.search(r"SELECT pg_drop_replication_slot\('\w+'\)", slot["do"]).group())
    only(doctor(sluice, own_pg.url()))


# -- Vacuum and size ---------------------------------------------------------------------------------

def test_autovacuum_off(sluice, own_pg):
    url = own_pg.url()
    sluice.run("init", db=url)
    query(url, "ALTER TABLE outbox_keys SET (autovacuum_enabled = false)")
    checks = doctor(sluice, url)
    only(checks, "tables")
    assert one(checks, "tables")["found"] == "outbox_keys: autovacuum is off for this table"
    query(url, one(checks, "tables")["do"])
    only(doctor(sluice, url))
    for setting in ("autovacuum", "track_counts"):
        query(url, f"ALTER SYSTEM SET {setting} = off")
        query(url, "SELECT pg_reload_conf()")
        wait_until(lambda: one(doctor(sluice, url), "autovacuum")["state"] == "bad", 20, "the reload")
        off = one(doctor(sluice, url), "autovacuum")
        assert off["found"].startswith(setting + " is off") and off["do"].startswith(setting + " = on")
        query(url, f"ALTER SYSTEM RESET {setting}")
        query(url, "SELECT pg_reload_conf()")
        wait_until(lambda: one(doctor(sluice, url), "autovacuum")["state"] == "ok", 20, "the reload")


@pytest.mark.slow
def test_bloat(sluice, pgbox):
    """100,000 messages that went, but for one; nobody cleaned up."""
    query(pgbox, "ALTER TABLE outbox SET (autovacuum_enabled = false)")
    query(pgbox, "INSERT INTO outbox (topic, entity_key, payload, idempotency_key, available_at) "  # it does not wait yet
                 "SELECT 't', 'key:' || i, decode(repeat('ab', 600), 'hex'), repeat('x', 300) || i, now() + interval '1 day' "
                 "FROM generate_series(1, 100000) i")
    query(pgbox, "DELETE FROM outbox WHERE id < 100000")
    query(pgbox, "ALTER TABLE outbox RESET (autovacuum_enabled)")
    wait_until(lambda: any("dead rows" in f["found"] for f in doctor(sluice, pgbox)["tables"]), 30, "the statistics")
    checks = doctor(sluice, pgbox)
    only(checks, "tables")
    found = " | ".join(f["found"] for f in checks["tables"])
    assert "outbox: 100000 dead rows" in found or "outbox: 99999 dead rows" in found
    assert "never vacuumed" in found
    assert re.search(r"\| outbox: \d+ MB, about \d+ kB would do for 1 rows", found)
    assert re.search(r"indexes of outbox: \d+ MB, about", found)
    query(pgbox, "VACUUM FULL outbox")
    query(pgbox, "VACUUM outbox")
    wait_until(lambda: one(doctor(sluice, pgbox), "tables")["state"] == "ok", 30, "the statistics")


# -- A SQLite file -----------------------------------------------------------------------------------

def test_another_journal(sluice, litebox):
    """It says so, and does not change it; a node does."""
    query(litebox, "PRAGMA journal_mode = DELETE")
    for _ in range(2):
        checks = doctor(sluice, litebox)
        only(checks, "journal")
        journal = one(checks, "journal")
        assert journal["state"] == "warn" and journal["found"].startswith("mode delete")
    assert query(litebox, "PRAGMA journal_mode") == [("delete",)]
    query(litebox, re.match(r"PRAGMA journal_mode = WAL", journal["do"]).group())
    only(doctor(sluice, litebox))


def test_a_long_wal(sluice, litebox):
    reader = open_transaction(litebox, "BEGIN", "SELECT count(*) FROM outbox")
    query(litebox, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) "
                   "INSERT INTO outbox (topic, payload) SELECT 't', randomblob(1048576) FROM n")
    checks = doctor(sluice, litebox)
    assert one(checks, "file")["state"] == "warn" and "outbox.db-wal has 7" in one(checks, "file")["found"]
    reader.close()
    query(litebox, re.search(r"PRAGMA wal_checkpoint\(TRUNCATE\)", one(checks, "file")["do"]).group())
    assert one(doctor(sluice, litebox), "file")["state"] == "ok"


def test_unused_pages(sluice, litebox):
    query(litebox, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) "
                   "INSERT INTO outbox (topic, payload) SELECT 't', randomblob(1048576) FROM n")
    query(litebox, "DELETE FROM outbox")
    checks = doctor(sluice, litebox)
    only(checks, "pages")
    assert re.fullmatch(r"4\d MB of 4\d MB are unused", one(checks, "pages")["found"])
    query(litebox, "VACUUM")
    only(doctor(sluice, litebox))


def test_a_broken_file(sluice, litebox):
    """Only a deep look finds it."""
    [(root,)] = query(litebox, "SELECT rootpage FROM sqlite_master WHERE name = 'outbox_dead'")
    [(size,)] = query(litebox, "PRAGMA page_size")
    query(litebox, "PRAGMA wal_checkpoint(TRUNCATE)")
    with open(litebox[len("sqlite:"):], "r+b") as f:
        f.seek((root - 1) * size)
        f.write(b"\xff" * 100)
    only(doctor(sluice, litebox))
    deep = doctor(sluice, litebox, "--deep")
    assert {f["state"] for f in deep["integrity"]} == {"bad"}
    assert str(root) in deep["integrity"][0]["found"] and ".recover" in deep["integrity"][0]["do"]
    assert one(deep, "waiting")["state"] == "ok"


def test_a_file_that_cannot_be_written(sluice, litebox, tmp_path):
    if os.geteuid() == 0:  # without the power to write everything
        sluice.wrapper = ["setpriv", "--bounding-set=-all", *sluice.wrapper]
    os.chmod(tmp_path / "outbox.db", 0o444)
    file = one(doctor(sluice, litebox), "file")
    assert file["state"] == "bad" and "outbox.db cannot be written to" in file["found"]
    os.chmod(tmp_path / "outbox.db", 0o644)
    os.chmod(tmp_path, 0o555)
    file = one(doctor(sluice, litebox), "file")
    assert file["state"] == "bad" and file["found"].startswith("the folder of ")
    os.chmod(tmp_path, 0o755)
    assert one(doctor(sluice, litebox), "file")["state"] == "ok"


# -- Nodes and messages ------------------------------------------------------------------------------

def test_a_node_that_does_not_beat(sluice, box):
    node = sluice.start("run", "--sink", "null:", "--node", "n1", "--lease", "2s", db=box)
    wait_until(lambda: one(doctor(sluice, box), "nodes")["found"] == "1 live", 20, "a node")
    node.kill9()
    wait_until(lambda: one(doctor(sluice, box), "nodes")["state"] == "warn", 20, "the end of its lease")
    nodes = one(doctor(sluice, box), "nodes")
    assert nodes["found"].startswith("n1 did not beat") and nodes["found"].endswith("0 live")


def test_lanes_without_an_owner(sluice, box):
    sluice.start("run", "--sink", "null:", "--node", "n1", "--assign", "static", "--static-lanes", "0-31", db=box)

    def free():
        checks = doctor(sluice, box)
        return "lanes" in checks and "32 of 64 have no owner (32-63)" in one(checks, "lanes")["found"]
    wait_until(free, 20, "a node with half of the lanes")
    assert one(doctor(sluice, box), "lanes")["state"] == "warn"
    query(box, f"UPDATE outbox_nodes SET started_at = '{DAYS_AGO}'")
    lanes = one(doctor(sluice, box), "lanes")
    assert lanes["state"] == "bad" and "static_lanes" in lanes["do"]


def test_a_blocked_key(sluice, box):
    sluice.run("push", "--topic", "t", "--key", "order:9182", "x", db=box)
    receipt = json.loads(sluice.run("pull", db=box).stdout)["receipt"]
    sluice.run("pull", "--retry", receipt, "--reason", "not today", db=box)
    assert one(doctor(sluice, box), "keys") == {"state": "ok", "check": "keys", "found": "1 blocked", "do": None}
    query(box, f"UPDATE outbox_keys SET since = '{DAYS_AGO}'")
    keys = one(doctor(sluice, box), "keys")
    assert keys["state"] == "bad"
    assert re.fullmatch(r"1 blocked, 'order:9182' for \d+d\d\dh by message 1: not today", keys["found"])
    query(box, "UPDATE outbox_keys SET due_at = " + ("'infinity'" if is_postgres(box) else "'9999-12-31'"))
    keys = one(doctor(sluice, box), "keys")
    assert keys["state"] == "warn" and keys["found"].endswith("parked, until an operator decides")


def test_messages_that_nobody_takes(sluice, box):
    sluice.run("push", "--topic", "orders", "x", db=box)
    assert one(doctor(sluice, box), "waiting")["state"] == "ok"
    wait_until(lambda: one(doctor(sluice, box, "--old", "10ms"), "waiting")["state"] == "bad", 20, "its age")
    query(box, f"UPDATE outbox SET available_at = '{DAYS_AGO}'")
    waiting = one(doctor(sluice, box), "waiting")
    assert waiting["state"] == "bad" and waiting["found"].startswith("message 1 (topic orders) has been due for ")
    assert "sluice run" in waiting["do"]
    sluice.run("run", "--sink", "null:", "--drain", db=box)
    only(doctor(sluice, box))
