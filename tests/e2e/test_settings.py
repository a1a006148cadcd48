"""Settings: where they come from, who wins, what is refused, and the commands around them."""
import json
import os

import pytest

from checker import commit
from harness import query

CANARY = "c4n4ry-p4ss"


@pytest.fixture
def conf(tmp_path):
    """Writes sluice.yaml and returns its path."""
    def write(text):
        path = tmp_path / "sluice.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)
    return write


def shown(sluice, *flags, env=None):
    """{name: (value, from)}"""
    got = json.loads(sluice.run("config", "show", "--json", *flags, env=env).stdout)
    return {name: (setting["value"], setting["from"]) for name, setting in got.items()}


# -- Precedence ----------------------------------------------------------------------------------

def test_precedence(sluice, conf):
    """Flag over environment over file over DATABASE_URL over default."""
    path = conf("workers: 2\nbatch: 20\nlease: 20s\ndb: sqlite:file.db\n")
    got = shown(sluice, "-c", path, "--workers", "3", env={"SLUICE_WORKERS": "4", "SLUICE_BATCH": "40",
                                                           "DATABASE_URL": "sqlite:url.db"})
    assert got["workers"] == (3, "flag")
    assert got["batch"] == (40, "environment")
    assert got["lease"] == ("20s", "file")
    assert got["db"] == ("sqlite:file.db", "file")
    assert got["poll"] == ("1s", "default")
    assert shown(sluice, env={"DATABASE_URL": "sqlite:url.db"})["db"] == ("sqlite:url.db", "DATABASE_URL")
    assert shown(sluice, env={"DATABASE_URL": "sqlite:url.db", "SLUICE_DB": "sqlite:env.db"})["db"] == \
        ("sqlite:env.db", "environment")
    assert shown(sluice, "--db", "sqlite:flag.db", env={"SLUICE_DB": "sqlite:env.db"})["db"] == ("sqlite:flag.db", "flag")
    assert shown(sluice, env={"SLUICE_CONFIG": path})["workers"] == (2, "file")
    assert shown(sluice, env={"SLUICE_WORKERS": "", "DATABASE_URL": "", "SLUICE_CONFIG": ""}) == shown(sluice)


def test_precedence_is_real(sluice, conf, tmp_path):
    """Not only shown: this is where the messages go."""
    path = conf(f"db: sqlite:{tmp_path}/file.db\nsink: file:{tmp_path}/file.jsonl\nworkers: 1\ndrain: true\n")
    sluice.run("init", "-c", path)
    commit(f"sqlite:{tmp_path}/file.db", 3)
    sluice.run("run", "-c", path, "--node", "n", env={"SLUICE_SINK": f"file:{tmp_path}/env.jsonl"})
    lines = [json.loads(line) for line in (tmp_path / "env.jsonl").read_text().splitlines()]
    assert [line["worker"] for line in lines] == ["n/1"] * 3
    assert not (tmp_path / "file.jsonl").exists()


def test_a_map_is_replaced_as_a_whole(sluice, conf):
    path = conf("columns:\n  topic: a\n  entity_key: b\n")
    assert shown(sluice, "-c", path)["columns"] == ({"topic": "a", "entity_key": "b"}, "file")
    assert shown(sluice, "-c", path, "--columns", "topic=x")["columns"] == ({"topic": "x"}, "flag")
    assert shown(sluice, "-c", path, env={"SLUICE_COLUMNS": "topic=x,worker=y"})["columns"] == \
        ({"topic": "x", "worker": "y"}, "environment")
    assert shown(sluice, "--columns", "topic=x", "--columns", "worker=y")["columns"][0] == {"topic": "x", "worker": "y"}


def test_every_setting_in_every_place(sluice, conf):
    """As flag, variable and line of the file, each with a value other than its default."""
    values = {"db": "sqlite:other.db", "table": "other", "columns": "topic=t", "lanes": "7", "inbox_table": "seen", "connect_timeout": "3s",
              "statement_timeout": "7s", "sink": "null:", "target": "t", "format": "plain", "source": "urn:x",
              "tombstones": "true", "kafka": "linger.ms=1", "strategy": "skip-locked", "assign": "static", "static_lanes": "0-3",
              "hold": "transaction", "workers": "9", "batch": "11", "batch_bytes": "3M", "lease": "13s", "wake": "poll",
              "poll": "17ms", "retry_base": "19ms", "retry_max": "23s", "idempotency_keep": "29h", "max_attempts": "31",
              "on_failure": "park", "delivery": "at-most-once", "fence": "none", "journal": "j", "retention": "29m", "unordered_delay": "true",
              "node": "me", "drain": "true", "log_format": "json", "log_level": "debug"}
    defaults = shown(sluice)
    alone = {"layout", "debezium"}  # cannot be with columns: test_the_layout_in_every_place
    assert set(values) == set(defaults) - alone, "a new setting belongs into this list"
    flags = [word for name, value in values.items() for word in ([f"--{name.replace('_', '-')}", value]
                                                                 if value != "true" else [f"--{name.replace('_', '-')}"])]
    env = {f"SLUICE_{name.upper()}": value for name, value in values.items()}
    maps = {"columns": "{topic: t}", "kafka": "{linger.ms: 1}"}
    text = "".join(f"{name}: {maps.get(name, json.dumps(value))}\n" for name, value in values.items())
    by = {"flag": shown(sluice, *flags), "environment": shown(sluice, env=env), "file": shown(sluice, "-c", conf(text))}
    for origin, got in by.items():
        assert {name: where for name, (_, where) in got.items() if name not in alone} == {name: origin for name in values}
        assert [got[name][0] for name in values] == [by["flag"][name][0] for name in values]
    for name in set(values) - {"wake", "fence"}:  # the other value of a fence goes with lanes and Kafka only: test_fence.py
        assert by["flag"][name][0] != defaults[name][0], name


def test_the_layout_in_every_place(sluice, conf):
    path = conf("layout: debezium\ndebezium:\n  route.by.field: kind\n")
    for origin, flags, env in (("flag", ["--layout", "debezium", "--debezium", "route.by.field=kind"], {}),
                               ("environment", [], {"SLUICE_LAYOUT": "debezium", "SLUICE_DEBEZIUM": "route.by.field=kind"}),
                               ("file", ["-c", path], {})):
        got = shown(sluice, *flags, env=env)
        assert (got["layout"], got["debezium"]) == (("debezium", origin), ({"route.by.field": "kind"}, origin))


def test_shown_values_can_be_given_again(sluice, conf):
    first = shown(sluice, "--lease", "90s", "--batch-bytes", "1536", "--poll", "60000ms", "--retry-max", "1d")
    assert [first[name][0] for name in ("lease", "batch_bytes", "poll", "retry_max")] == ["90s", "1536", "1m", "1d"]
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, (value, _) in first.items()
                   if value is not None and value != {})
    again = shown(sluice, "-c", conf(text))
    assert {name: value for name, (value, _) in again.items()} == {name: value for name, (value, _) in first.items()}


def test_the_sample_file_is_right(sluice, conf):
    """Every line of it, also without the comment sign."""
    text = sluice.run("config", "docs", "yaml").stdout
    assert shown(sluice, "-c", conf(text)) == shown(sluice)
    names = [line[1:].partition(":")[0] for line in text.splitlines() if line.startswith("#") and line[1:2].isalpha()]
    assert names == list(shown(sluice))


# -- The file ------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, words", [
    ("wrokers: 3\n", [":1: unknown setting 'wrokers'", "did you mean workers?"]),
    ("# a comment\n\nnonsense_at_all: 3\n", [":3: unknown setting 'nonsense_at_all'", "config docs yaml"]),
    ("workers: 3\nworkers: 4\n", [":2: workers is set twice"]),
    ("workers: many\n", [":1: ", "'many' will not do for workers", "whole number"]),
    ("workers:\n", [":1: workers has no value"]),
    ("workers: ~\n", [":1: workers has no value"]),
    ("workers: [1, 2]\n", [":1: workers takes a single value, not a list"]),
    ("workers: {a: 1}\n", [":1: workers takes a single value, not a mapping"]),
    ("columns: x\n", [":1: columns takes a mapping, not a single value"]),
    ("columns:\n  topic: [a]\n", [":2: topic takes a single value, not a list"]),
    ("columns:\n  topic: a\n  topic: b\n", [":3: columns has 'topic' twice"]),
    ("- workers\n", [":1: settings are expected as NAME: VALUE, not a list"]),
    ("workers\n", [":1: settings are expected"]),
    ("workers: 3\n---\nworkers: 4\n", ["a second document"]),
    ("workers: 3\n\tbatch: 4\n", [":2: "]),
    ("workers: [\n", ["sluice.yaml:"]),
    ("workers: 'x\n", ["sluice.yaml:"]),
    ("<<: {workers: 3}\n", [":1: merging with << is not supported"]),
    ("? [a]\n: b\n", [":1: a name is expected, not a list"]),
    ("lease: 30\n", [":1: ", "'30' will not do for lease", "30s"]),
    ("lease: 99999999999999999999s\n", [":1: ", "too large for lease"]),
    ("drain: perhaps\n", [":1: ", "true or false"]),
    ("hold: Lease\n", [":1: ", "lease|transaction"]),
    ("retry_base: 1h\n", ["retry_base is longer than retry_max"]),
    ("strategy: lines\n", ["unknown strategy 'lines'", "lanes, guard, advisory, skip-locked"]),
    ("assign: static\n", ["assign is static, but static_lanes does not say which lanes", "--static-lanes 0-15"]),
    ("static_lanes: 0-3\n", ["static_lanes is for assign: static only"]),
    (b"workers: 3\n\xff\xfe\n", ["sluice.yaml"]),
    (b"node: \"a\\0b\"\n", [":1: node holds a NUL character"]),
    ("json: true\n", ["unknown setting 'json'"]),
    ("workers: 3\n" + "# " + "x" * 1_100_000, ["is larger than"]),
], ids=lambda v: repr(v)[:30] if not isinstance(v, list) else "")
def test_wrong_files(sluice, conf, text, words):
    path = conf(text)
    for command in (["config", "check"], ["config", "show"], ["status"]):
        done = sluice.run(*command, "-c", path, check=2)
        assert done.stdout == "" and "sluice.yaml" in done.stderr or \
            any(name in done.stderr for name in ("retry", "strategy", "static_lanes"))
        for word in words:
            assert word in done.stderr


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n", "workers: 3 # three\n", "'workers': '3'\n",
                                  "%YAML 1.1\n---\nworkers: 3\n...\n", "\ufeffworkers: 3\n", "workers: &a 3\nbatch: *a\n",
                                  "columns: {}\n", "workers: 3\r\nbatch: 3\r\n", "workers: 3"])
def test_right_files(sluice, conf, text):
    path = conf(text)
    assert sluice.run("config", "check", "-c", path).stdout == f"{path}: OK\n"
    if "workers" in text:
        assert shown(sluice, "-c", path)["workers"] == (3, "file")


def test_unreadable_files(sluice, tmp_path):
    for path, words in ((tmp_path / "none.yaml", "No such file or directory"), (tmp_path, "directory")):
        done = sluice.run("config", "check", "-c", path, check=2)
        assert words in done.stderr and str(path) in done.stderr
    done = sluice.run("config", "check", env={"SLUICE_CONFIG": str(tmp_path / "none.yaml")}, check=2)
    assert "No such file or directory" in done.stderr


# -- The environment -----------------------------------------------------------------------------

@pytest.mark.parametrize("env, words", [
    ({"SLUICE_WROKERS": "3"}, ["unknown variable SLUICE_WROKERS", "did you mean SLUICE_WORKERS?"]),
    ({"SLUICE_NONSENSE_AT_ALL": "3"}, ["unknown variable SLUICE_NONSENSE_AT_ALL"]),
    ({"SLUICE_workers": "3"}, ["unknown variable SLUICE_workers"]),
    ({"SLUICE_WORKERS": "many"}, ["SLUICE_WORKERS: 'many' will not do for workers"]),
    ({"SLUICE_WORKERS": "-1"}, ["SLUICE_WORKERS: '-1' is too small"]),
    ({"SLUICE_DRAIN": "2"}, ["SLUICE_DRAIN: ", "true or false"]),
    ({"SLUICE_COLUMNS": "x"}, ["SLUICE_COLUMNS: ", "OURS=THEIRS"]),
    ({"SLUICE_WORKERS_FILE": "/etc/hostname"}, ["SLUICE_WORKERS_FILE: workers cannot be read from a file"]),
    ({"SLUICE_DB_FILE": "/none/at/all"}, ["SLUICE_DB_FILE: ", "No such file or directory"]),
    ({"SLUICE_DB_FILE": "/dev/null", "SLUICE_DB": "sqlite:x"}, ["db is set twice in the environment"]),
])
def test_wrong_variables(sluice, env, words):
    if env.get("SLUICE_DB_FILE") == "/dev/null":
        with open(os.path.join(sluice.cwd, "secret"), "w") as f:
            f.write("sqlite:y")
        env = {**env, "SLUICE_DB_FILE": f"{sluice.cwd}/secret"}
    done = sluice.run("status", env=env, check=2)
    for word in words:
        assert word in done.stderr


def test_variables_that_platforms_make_up(sluice):
    """A service called sluice or sluice-db, in Kubernetes."""
    env = {"SLUICE_PORT": "tcp://10.0.0.1:80", "SLUICE_SERVICE_HOST": "10.0.0.1", "SLUICE_PORT_80_TCP_ADDR": "10.0.0.1",
           "SLUICE_DB_PORT": "tcp://10.0.0.2:5432", "SLUICE_DB_SERVICE_PORT": "5432"}
    assert shown(sluice, env=env) == shown(sluice)


@pytest.mark.parametrize("text", ["sqlite:secret.db", "sqlite:secret.db\n", "sqlite:secret.db\r\n"])
def test_secret_files(sluice, tmp_path, text):
    path = tmp_path / "secret"
    path.write_bytes(text.encode())
    sluice.run("init", env={"SLUICE_DB_FILE": str(path)})
    assert (tmp_path / "secret.db").exists()


# -- Secrets -------------------------------------------------------------------------------------

@pytest.mark.parametrize("url, masked", [
    (f"postgresql://user:{CANARY}@host/db", "postgresql://user:***@host/db"),
    (f"postgresql://host/db?user=u&password={CANARY}&sslmode=require",
     "postgresql://host/db?user=u&password=***&sslmode=require"),
    (f"postgresql://host/db?sslpassword={CANARY}", "postgresql://host/db?sslpassword=***"),
    (f"host=h password={CANARY} user=u", "host=h password=*** user=u"),
    (f"host=h password = '{CANARY} \\' x' user=u", "host=h password = *** user=u"),
    (f"https://:{CANARY}@host/x", "https://:***@host/x"),
    ("postgresql://user@host:5432/db", "postgresql://user@host:5432/db"),
    ("sqlite:/a/b c.db", "sqlite:/a/b c.db"),
])
def test_config_show_masks_secrets(sluice, conf, url, masked):
    for flags, env in ((["--db", url], None), ([], {"SLUICE_DB": url}), (["-c", conf(f"db: {json.dumps(url)}\n")], None)):
        assert shown(sluice, *flags, env=env)["db"][0] == masked
        text = sluice.run("config", "show", *flags, env=env).stdout
        assert masked in text and CANARY not in text


# -- Commands ------------------------------------------------------------------------------------

@pytest.mark.parametrize("args, words", [
    (["pusj"], ["unknown command 'pusj'", "did you mean 'push'?"]),
    (["Run"], ["unknown command 'Run'", "did you mean 'run'?"]),
    (["frobnicate"], ["unknown command 'frobnicate'", "--help"]),
    (["--drain"], ["unknown flag '--drain'", "flags follow a command"]),
    (["help", "nonsense"], ["unknown command 'nonsense'"]),
    (["config"], ["what is to be done is missing", "show, check or docs"]),
    (["config", "frobnicate"], ["'frobnicate' cannot be done"]),
    (["config", "docs"], ["kind of documentation is missing"]),
    (["config", "docs", "pdf"], ["'pdf' is no kind of documentation"]),
    (["config", "show", "x"], ["unexpected argument 'x'"]),
    (["version", "x"], ["unexpected argument 'x'"]),
    (["status", "x"], ["status takes no argument 'x'"]),
    (["init", "x"], ["init takes no argument 'x'"]),
    (["init", "--pritn"], ["unknown flag --pritn", "did you mean --print?"]),
    (["init", "--lanes", "0"], ["'0' is too small for lanes", "from 1 to 32768"]),
    (["init", "--lanes", "40000"], ["'40000' is too large for lanes"]),
    (["init", "--help=yes"], ["--help takes no value"]),
    (["init", "--db", ""], ["db must not be empty"]),
    (["status", "--json=perhaps"], ["will not do for json"]),
    (["status", "--workers", "3"], ["--workers is no flag of this command", "sluice run"]),
])
def test_wrong_use(sluice, args, words):
    done = sluice.run(*args, check=2)
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


def test_nothing_at_all(sluice):
    done = sluice.run(check=2)
    assert done.stdout == "" and done.stderr.startswith("Usage: sluice COMMAND")


def test_help(sluice):
    top = sluice.run("--help").stdout
    assert sluice.run("-h").stdout == sluice.run("help").stdout == top
    for command in ("init", "push", "run", "pull", "status", "config", "version"):
        assert f"\n  {command} " in top
        text = sluice.run(command, "--help").stdout
        assert text.startswith(f"Usage: sluice {command}")
        assert sluice.run("help", command).stdout == sluice.run(command, "-h").stdout == text
        assert all(len(line) <= 90 for line in text.splitlines()), command


def test_version(sluice):
    got = json.loads(sluice.run("version", "--json").stdout)
    assert got["version"].count(".") == 2
    assert {"postgres", "sqlite"} <= set(got["databases"]) and "skip-locked" in got["strategies"]
    assert {"file", "stdout", "null"} <= set(got["sinks"])
    text = sluice.run("version").stdout
    assert text.startswith(f"sluice {got['version']}\n")
    assert sluice.run("--version").stdout == sluice.run("-V").stdout == text


def test_output_that_cannot_be_written_is_a_failure(sluice):
    """sluice config show > full-disk"""
    with open("/dev/full", "wb") as full:
        for command in (["config", "show"], ["version"], ["--help"], ["init", "--print"]):
            p = sluice.start(*command, stdout=full)
            p.wait(status=1)
            assert "cannot write to standard output: No space left on device" in p.stderr()


@pytest.mark.parametrize("url, status, words", [
    ("nonsense:x", 1, ["no database of this build takes a URL that begins with 'nonsense'", "sqlite:PATH"]),
    ("mysql://h/x", 1, ["'mysql'"]),
    ("/tmp/x.db", 1, ["no database"]),
    ("sqlite:", 1, ["the URL has no path"]),
    ("sqlite::memory:", 1, [":memory:"]),
    ("postgresql://h.invalid:port/x", 1, ["host and port"]),
    ("host=h nonsense=1", 1, ["cannot be read"]),
])
def test_wrong_databases(sluice, url, status, words):
    for command in (["init"], ["status"], ["run", "--sink", "null:"]):
        done = sluice.run(*command, db=url, check=status)
        for word in words:
            assert word in done.stderr


# -- Status --------------------------------------------------------------------------------------

def test_status(sluice, db):
    sluice.run("init", "--lanes", 5, db=db)

    def status():
        return json.loads(sluice.run("status", "--json", db=db).stdout)
    assert status() == {"table": "outbox", "schema_version": 5, "lanes": 5, "total": 0, "due": 0, "leased": 0,
                        "scheduled": 0, "held": 0, "blocked_keys": 0, "parked_keys": 0, "dead": 0, "lag_seconds": 0, "strategy": None,
                        "nodes": 0, "per_second": 0, "free_lanes": 5, "workers": []}
    commit(db, 10)
    sluice.run("push", "--topic", "later", "--delay", "1h", "1", db=db)
    skip_locked = ["--strategy", "skip-locked"]
    held = [json.loads(line) for line in sluice.run("pull", *skip_locked, "--batch", 3, "--node", "me \"é\"", "--lease",
                                                    "1h", db=db).stdout.splitlines()]
    sluice.run("pull", *skip_locked, "--bury", held[0]["receipt"], db=db)
    got = status()
    assert {name: got[name] for name in ("total", "due", "leased", "scheduled", "dead")} == \
        {"total": 10, "due": 7, "leased": 2, "scheduled": 1, "dead": 1}
    assert 0 < got["lag_seconds"] < 600
    [worker] = got["workers"]
    assert (worker["worker"], worker["messages"]) == ('me "é"', 2) and 3000 < worker["lease_seconds"] <= 3600
    text = sluice.run("status", db=db).stdout
    for line in ("table      outbox (schema version 5, 5 lanes)", "due        7", "leased     2", "scheduled  1",
                 "dead       1"):
        assert line in text.splitlines()
    assert 'me "é"' in text


def test_lag_is_of_the_oldest_that_is_due(sluice, db):
    sluice.run("init", db=db)
    before = "now() - interval '100 seconds'" if db.startswith("postgres") else \
        "strftime('%Y-%m-%d %H:%M:%f', 'now', '-100 seconds')"
    query(db, f"INSERT INTO outbox (topic, payload, available_at) VALUES ('t', '1', {before})")
    query(db, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    sluice.run("push", "--topic", "later", "--delay", "1h", "1", db=db)
    assert 100 <= json.loads(sluice.run("status", "--json", db=db).stdout)["lag_seconds"] < 160
    query(db, "DELETE FROM outbox WHERE topic = 't'")
    assert json.loads(sluice.run("status", "--json", db=db).stdout)["lag_seconds"] == 0


def test_times_that_a_producer_wrote(sluice, sqlitedb):
    """Any form that SQLite reads, in the column or with a time zone."""
    sluice.run("init", db=sqlitedb)
    for when in ("2020-01-01", "2020-01-01T00:00:00", "2020-01-01 00:00:00.123", "2020-01-01T00:00:00Z",
                 "2020-01-01T02:00:00+02:00"):
        query(sqlitedb, "INSERT INTO outbox (topic, payload, available_at) VALUES ('t', '1', ?)", when)
    query(sqlitedb, "INSERT INTO outbox (topic, payload, available_at) VALUES ('t', '1', '2999-01-01T00:00:00Z')")
    got = json.loads(sluice.run("status", "--json", db=sqlitedb).stdout)
    assert (got["due"], got["scheduled"]) == (5, 1)
    sluice.run("run", "--sink", "null:", "--drain", db=sqlitedb)
    assert query(sqlitedb, "SELECT count(*) FROM outbox") == [(1,)]
