"""The tables: made, made again, printed, adopted, refused; and what they keep out."""
import collections
import json
import os
import re
import sqlite3
import subprocess
import uuid

import psycopg2
import pytest

from checker import check, commit, message, read_sink
from conftest import assert_in_order
from harness import connect, is_postgres, query, wait_until

def refuses(url, sql, *args):
    """The database's own error."""
    with pytest.raises((psycopg2.Error, sqlite3.Error)) as e:
        query(url, sql, *args)
    return str(e.value)


def catalogue(pg, url):
    """What the database says that it is made of, without what depends on the moment."""
    if not is_postgres(url):
        return query(url, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"), \
            query(url, "SELECT * FROM outbox_meta ORDER BY name")
    dump = subprocess.run([os.path.join(pg.bin, "pg_dump"), "--schema-only", "--no-owner", url], capture_output=True,
                          text=True, check=True).stdout
    dump = re.sub(r"(?m)^\\(un)?restrict .*$", "", dump)
    return dump, query(url, "SELECT * FROM outbox_meta ORDER BY name")


def all_of(table):
    """The table and its side tables."""
    sides = ("claims", "consumed", "dead", "fences", "idempotency", "keys", "lanes", "meta", "nodes", "sent")
    return sorted([table, *(f"{table}_{side}" for side in sides)])


def tables(url):
    if is_postgres(url):
        sql = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_)' ORDER BY 1"
    else:
        sql = "SELECT 'public.' || name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1"
    return [name.removeprefix("public.") for (name,) in query(url, sql)]


# -- Making --------------------------------------------------------------------------------------

def test_idempotent(sluice, pg, db):
    assert sluice.run("init", db=db).stdout == "created table outbox (schema version 5, 64 lanes)\n"
    before = catalogue(pg, db)
    messages = commit(db, 10)
    assert sluice.run("init", db=db).stdout == "table outbox is up to date (schema version 5, 64 lanes)\n"
    assert catalogue(pg, db) == before
    assert query(db, "SELECT count(*) FROM outbox") == [(len(messages),)]


def test_lanes_are_fixed_when_the_table_is_made(sluice, pg, db):
    """Another number that was asked for is refused, with what to do; none asked for is any."""
    sluice.run("init", "--lanes", 8, db=db)
    before = catalogue(pg, db)
    for args, env in ((["--lanes", 16], {}), ([], {"SLUICE_LANES": "16"})):
        done = sluice.run("init", *args, db=db, env=env, check=1)
        assert "has 8 lanes, not 16" in done.stderr and "sluice lanes --set 16" in done.stderr
    for args in ([], ["--lanes", 8]):
        assert "8 lanes" in sluice.run("init", *args, db=db).stdout
    assert catalogue(pg, db) == before
    assert json.loads(sluice.run("status", "--json", db=db).stdout)["lanes"] == 8


@pytest.mark.parametrize("round", range(3))
def test_eight_at_once_on_an_empty_database(sluice, db, round):
    several = [sluice.start("init", db=db) for _ in range(8)]
    for p in several:
        p.wait(status=0)
    said = collections.Counter(p.stdout().split()[0] for p in several)
    assert said == {"created": 1, "table": 7}
    assert tables(db) == all_of("outbox")


def test_a_failed_init_leaves_nothing(sluice, db):
    """All of it or none: here the last statement cannot work."""
    query(db, "CREATE TABLE outbox_meta (name text PRIMARY KEY, value text NOT NULL CHECK (length(value) > 9))")
    done = sluice.run("init", db=db, check=1)
    assert "constraint" in done.stderr
    assert tables(db) == ["outbox_meta"]


def test_the_folder_must_be_there(sluice, tmp_path):
    done = sluice.run("init", db=f"sqlite:{tmp_path}/none/outbox.db", check=3)
    assert "cannot open" in done.stderr and "none/outbox.db" in done.stderr


def test_a_file_that_is_no_database(sluice, tmp_path):
    (tmp_path / "x.db").write_bytes(b"this is no SQLite file" * 100)
    done = sluice.run("init", db=f"sqlite:{tmp_path}/x.db", check=1)
    assert "not a database" in done.stderr


# -- Printing ------------------------------------------------------------------------------------

def run_script(pg, url, script):
    """As an administrator would: psql or sqlite3, stopping at an error."""
    argv = [os.path.join(pg.bin, "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-d", url] if is_postgres(url) else \
        ["sqlite3", "-batch", "-bail", url.removeprefix("sqlite:")]
    subprocess.run(argv, input=script, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("flags", [[], ["--lanes", "7"]])
def test_print_makes_the_same_tables(sluice, pg, db, tmp_path, flags):
    other = pg.new_database() if is_postgres(db) else f"sqlite:{tmp_path}/other.db"
    script = sluice.run("init", "--print", *flags, db=db).stdout
    assert not tables(db), "printing makes nothing"
    run_script(pg, other, script)
    sluice.run("init", *flags, db=db)
    assert catalogue(pg, other) == catalogue(pg, db)
    assert "up to date" in sluice.run("init", *flags, db=other).stdout
    if is_postgres(db):  # SQLite cannot add a column only if it is missing: there it fails, loudly
        run_script(pg, other, script)  # once more does no harm
    assert catalogue(pg, other) == catalogue(pg, db)


def test_print_needs_no_server(sluice):
    script = sluice.run("init", "--print", db="postgresql:").stdout
    assert script.startswith("BEGIN;") and 'CREATE TABLE IF NOT EXISTS "outbox"' in script
    assert script.rstrip().endswith("COMMIT;")
    assert "AUTOINCREMENT" in sluice.run("init", "--print").stdout


def test_print_with_names(sluice, pg, pgdb):
    query(pgdb, "CREATE SCHEMA app")
    script = sluice.run("init", "--print", "--table", "app.events", "--columns", "entity_key=aggregate_id", db=pgdb).stdout
    run_script(pg, pgdb, script)
    query(pgdb, "INSERT INTO app.events (topic, aggregate_id, payload) VALUES ('t', 'k', '1')")
    out = os.path.join(sluice.cwd, "out.jsonl")
    sluice.run("run", "--sink", f"file:{out}", "--drain", "--table", "app.events", "--columns", "entity_key=aggregate_id",
               db=pgdb)
    assert [d.key for d in read_sink(out)] == ["k"]


# -- Older, newer, or not there ------------------------------------------------------------------

def make_version_1(sluice, pg, db):
    """As an older program left it: with a message that is leased, one that failed, and others."""
    script = sluice.run("init", "--print", db=db).stdout.partition("-- Version 2")[0] + "COMMIT;\n"
    run_script(pg, db, script)
    later = "now() + interval '1 hour'" if is_postgres(db) else "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour')"
    messages = commit(db, 200)  # of each key two or three
    query(db, f"UPDATE outbox SET leased_until = {later}, worker = 'old/1', epoch = 7, attempts = 3 WHERE id = 1")
    query(db, f"UPDATE outbox SET available_at = {later}, attempts = 1, last_error = 'no' WHERE id = 2")
    return messages


def test_migrate_from_version_1(sluice, pg, db, tmp_path):
    """All or nothing, with what is in it: what was held or waits holds its key back now."""
    messages = make_version_1(sluice, pg, db)
    for command in COMMANDS.values():
        done = sluice.run(*command, db=db, check=1)
        assert "has schema version 1, this program needs 4" in done.stderr and "sluice init" in done.stderr
    assert sluice.run("init", db=db).stdout == "migrated table outbox from schema version 1 to 4\n"
    assert "up to date" in sluice.run("init", db=db).stdout
    fresh = pg.new_database() if is_postgres(db) else f"sqlite:{tmp_path}/fresh.db"
    sluice.run("init", db=fresh)
    assert catalogue(pg, db) == catalogue(pg, fresh)
    assert query(db, "SELECT count(*) FROM outbox_lanes") == [(64,)]

    out = tmp_path / "out.jsonl"
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=db)
    kept = {id for id, m in messages.items() if m.key in ("order:1", "order:2")}
    assert kept == {1, 2, 98, 99, 195, 196}
    assert {id for (id,) in query(db, "SELECT id FROM outbox")} == kept
    past = "now()" if is_postgres(db) else "'2020-01-01'"
    query(db, f"UPDATE outbox SET leased_until = NULL, available_at = {past}")
    query(db, f"UPDATE outbox_keys SET due_at = {past}")
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=db)
    record = read_sink(out)
    assert check(messages, record, least=200).duplicates == 0
    assert_in_order(record)
    assert {d.id: d.attempt for d in record if d.id < 4} == {1: 4, 2: 2, 3: 1}


@pytest.mark.parametrize("round", range(2))
def test_eight_migrate_at_once(sluice, pg, db, round):
    make_version_1(sluice, pg, db)
    several = [sluice.start("init", db=db) for _ in range(8)]
    for p in several:
        p.wait(status=0)
    assert collections.Counter(p.stdout().split()[0] for p in several) == {"migrated": 1, "table": 7}
    assert query(db, "SELECT count(*) FROM outbox") == [(200,)]


COMMANDS = {
    "push": ["push", "--topic", "t", "x"],
    "lines": ["push", "--lines", "-"],
    "run": ["run", "--sink", "null:", "--drain"],
    "pull": ["pull"],
    "ack": ["pull", "--ack", "1:1"],
    "status": ["status"],
}


def test_schema_newer_than_the_program(sluice, db):
    sluice.run("init", db=db)
    query(db, "UPDATE outbox_meta SET value = '5' WHERE name = 'schema_version'")
    for command in (["init"], *COMMANDS.values()):
        done = sluice.run(*command, db=db, check=4)
        assert "schema version 5" in done.stderr and "newer sluice" in done.stderr
        assert done.stdout == ""
    assert query(db, "SELECT value FROM outbox_meta WHERE name = 'schema_version'") == [("5",)]


def test_schema_becomes_newer_while_a_node_runs(sluice, pgdb):
    """A rolling upgrade: the old node goes on until it must connect again, and then stops with 4."""
    sluice.run("init", db=pgdb)
    node = sluice.start("run", "--sink", "null:", "--poll", "50ms", "--workers", 1, db=pgdb)
    for newer in (False, True):
        if newer:
            query(pgdb, "UPDATE outbox_meta SET value = '5' WHERE name = 'schema_version'")
        commit(pgdb, 10)
        wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox") == [(0,)], 10, f"delivery by {node}")
    query(pgdb, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice'"
                " AND datname = current_database()")
    node.wait(status=4)
    assert "newer sluice" in node.stderr()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_table(sluice, db, command):
    connect(db).execute("CREATE TABLE other (a int)") if not is_postgres(db) else None
    done = sluice.run(*command, db=db, check=1)
    assert "table 'outbox' is not there" in done.stderr and "hint: run 'sluice init'" in done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_sqlite_file(sluice, sqlitedb, command):
    """A mistyped path must not become an empty database."""
    done = sluice.run(*command, db=sqlitedb, check=3)
    assert "does not exist" in done.stderr and "sluice init" in done.stderr
    assert not os.path.exists(sqlitedb.removeprefix("sqlite:"))


def test_a_table_that_was_not_initialised(sluice, db):
    query(db, "CREATE TABLE outbox (id bigint, payload text)")
    done = sluice.run("status", db=db, check=1)
    assert "was not made by sluice init" in done.stderr


# -- Names ---------------------------------------------------------------------------------------

EVIL = ['a"b', "a;b", "a b", "a'b", "a--b", "a/*b", "a\\b", "a\nb", "1a", "a-b", "a.b.c", ".a", "a.", ".", "a" * 100,
        "outböx", "таблица", "a(b", "outbox; DROP TABLE users", "$a", "%s", "a\u200bb"]


@pytest.mark.parametrize("name", ["", *EVIL])
def test_evil_table_names_are_refused(sluice, sqlitedb, name):
    for command in (["init", "--print"], ["init"], COMMANDS["push"], COMMANDS["run"]):
        done = sluice.run(*command, "--table", name, db=sqlitedb, check=2)
        assert "table" in done.stderr and done.stdout == ""
    assert not os.path.exists(sqlitedb.removeprefix("sqlite:"))


@pytest.mark.parametrize("name", EVIL)
def test_evil_column_names_are_refused(sluice, sqlitedb, name):
    env = {"SLUICE_COLUMNS": "entity_key=" + name.replace("\\", "\\\\")}
    for command in (["init"], ["status"]):
        done = sluice.run(*command, db=sqlitedb, env=env, check=2)
        assert "columns" in done.stderr
    assert not os.path.exists(sqlitedb.removeprefix("sqlite:"))


@pytest.mark.parametrize("columns, words", [
    ("entity_key", "columns"), ("topic=a,topic=b", "twice"), ("nonsense=a", "nonsense"),
    ("entity_key=", "columns"), ("topic=payload", "both"),
    ("topic=x,entity_key=x", "both")])
def test_wrong_column_mappings_are_refused(sluice, sqlitedb, columns, words):
    done = sluice.run("init", "--columns", columns, db=sqlitedb, check=2)
    assert words in done.stderr
    assert not os.path.exists(sqlitedb.removeprefix("sqlite:"))


@pytest.mark.parametrize("name", ["a", "_", "Outbox", "select", "a$1", "x" * 47])
def test_other_names(sluice, db, name):
    """Also such that SQL would fold or take for a keyword."""
    sluice.run("init", "--table", name, db=db)
    sluice.run("init", "--table", name, db=db)
    sluice.run("push", "--topic", "t", "--table", name, "1", db=db)
    assert sorted(tables(db)) == all_of(name)
    sluice.run("run", "--sink", "file:out.jsonl", "--drain", "--table", name, db=db)
    sluice.run("push", "--topic", "t", "--key", "k", "--table", name, "1", db=db)
    sluice.run("run", "--strategy", "guard", "--sink", "file:out.jsonl", "--drain", "--table", name, db=db)
    assert len(read_sink(f"{sluice.cwd}/out.jsonl")) == 2


def test_a_schema(sluice, pgdb):
    query(pgdb, "CREATE SCHEMA app")
    query(pgdb, 'CREATE SCHEMA "Odd"')
    for table in ("app.outbox", "Odd.Box", "outbox"):
        sluice.run("init", "--table", table, db=pgdb)
        sluice.run("push", "--table", table, "--topic", table, "1", db=pgdb)
    assert sorted(tables(pgdb)) == sorted(all_of("Odd.Box") + all_of("app.outbox") + all_of("outbox"))
    assert query(pgdb, 'SELECT topic FROM "Odd"."Box"') == [("Odd.Box",)]
    assert query(pgdb, "SELECT topic FROM app.outbox") == [("app.outbox",)]
    for table in ("app.outbox", "Odd.Box"):
        for strategy in ("lanes", "guard", "advisory", "skip-locked"):
            sluice.run("push", "--table", table, "--topic", table, "--key", "k", "1", db=pgdb)
            sluice.run("run", "--table", table, "--strategy", strategy, "--sink", "null:", "--drain", db=pgdb)
    assert query(pgdb, 'SELECT count(*) FROM "Odd"."Box"') == query(pgdb, "SELECT count(*) FROM app.outbox") == [(0,)]


def test_a_schema_that_is_not_there(sluice, pgdb, sqlitedb):
    done = sluice.run("init", "--table", "nowhere.outbox", db=pgdb, check=1)
    assert 'schema "nowhere" does not exist' in done.stderr
    done = sluice.run("init", "--table", "app.outbox", db=sqlitedb, check=1)
    assert "names a schema" in done.stderr


def test_two_outboxes_in_one_database(sluice, db):
    out = f"{sluice.cwd}/out.jsonl"
    for table in ("outbox", "inbox"):
        sluice.run("init", "--table", table, db=db)
    first, second = commit(db, 30), commit(db, 20, table="inbox")
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=db)
    assert check(first, read_sink(out), least=30).lines == 30
    assert query(db, "SELECT count(*) FROM inbox") == [(20,)]
    os.remove(out)
    sluice.run("run", "--sink", f"file:{out}", "--drain", "--table", "inbox", db=db)
    assert check(second, read_sink(out), least=20).lines == 20


# -- What the tables keep out --------------------------------------------------------------------

@pytest.mark.parametrize("column, good, bad", [
    ("entity_key", "x" * 512, "x" * 513), ("entity_key", "é" * 256, "é" * 257), ("topic", "t", ""),
    ("idempotency_key", "x" * 512, "x" * 513)])
def test_the_database_refuses(sluice, db, column, good, bad):
    sluice.run("init", db=db)
    row = {"topic": "t", "payload": b"1"}
    for value, refused in ((good, False), (bad, True)):
        row[column] = value
        sql = f"INSERT INTO outbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        if refused:
            assert "outbox_ck_" in refuses(db, sql, *row.values())
        else:
            query(db, sql, *row.values())


@pytest.mark.parametrize("headers", ["[]", '"x"', "1", "{", "nonsense"])
def test_headers_must_be_an_object(sluice, db, headers):
    sluice.run("init", db=db)
    refuses(db, "INSERT INTO outbox (topic, payload, headers) VALUES ('t', '1', ?)", headers)


def test_headers_must_hold_strings(sluice, pgdb):
    """SQLite cannot say that in a constraint."""
    db = pgdb
    sluice.run("init", db=db)
    query(db, "INSERT INTO outbox (topic, payload, headers) VALUES ('t', '1', '{\"a\":\"1\"}')")
    for headers in ('{"a":1}', '{"a":null}', '{"a":"x","b":{}}'):
        refuses(db, "INSERT INTO outbox (topic, payload, headers) VALUES ('t', '1', ?)", headers)


@pytest.mark.parametrize("columns, values", [
    ("topic", "'t'"), ("payload", "'1'"), ("topic, payload, available_at", "'t', '1', 'nonsense'"),
    ("topic, payload, lane", "'t', '1', 3")])
def test_what_a_producer_must_and_must_not_give(sluice, db, columns, values):
    sluice.run("init", db=db)
    refuses(db, f"INSERT INTO outbox ({columns}) VALUES ({values})")


def test_idempotency_key_is_unique(sluice, db):
    sluice.run("init", db=db)
    insert = "INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', '1', 'once')"
    for more in ("", "", " ON CONFLICT DO NOTHING", " RETURNING id"):
        assert not query(db, insert + more)
    for _ in range(2):
        query(db, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    assert query(db, "SELECT count(*), count(idempotency_key) FROM outbox") == [(3, 1)]
    query(db, "DELETE FROM outbox")
    assert not query(db, insert + " RETURNING id")
    assert query(db, insert.replace("once", "again") + " RETURNING id")
    assert query(db, "SELECT idempotency_key FROM outbox") == [("again",)]


def test_ids_are_not_given_again(sluice, db):
    """Not even after the table was empty: an id is known to consumers."""
    sluice.run("init", db=db)
    seen = set()
    for _ in range(3):
        seen |= set(commit(db, 5))
        sluice.run("run", "--sink", "null:", "--drain", db=db)
    assert seen == set(range(1, 16))


# -- Lanes ---------------------------------------------------------------------------------------

def uuids():
    return [str(uuid.uuid5(uuid.NAMESPACE_OID, str(i))) for i in range(10000)]


KEYS = {
    "order:N": [f"order:{i}" for i in range(10000)],
    "padded": [f"customer-{i:08}" for i in range(10000)],
    "prefix": [f"{i}:eu-west-1:orders" for i in range(10000)],
    "uuid": uuids(),
    "unicode": [f"ключ-{i}-鍵" for i in range(10000)],
    "number": [str(i) for i in range(10000)],
    "mail": [f"user{i:05}@example.com" for i in range(10000)],
    "none": [None] * 10000,
}


@pytest.mark.parametrize("kind", KEYS)
def test_lanes_are_spread(sluice, db, kind):
    """64 lanes, 10,000 keys: 156 for each lane; none may have less than half or more than twice
    that, and none is negative. One key is always in one lane."""
    sluice.run("init", db=db)
    conn = connect(db)
    cur = conn.cursor()
    cur.execute("BEGIN")
    insert = "INSERT INTO outbox (topic, payload, entity_key)"
    if is_postgres(db):
        cur.execute(f"{insert} SELECT 't', '1', k FROM unnest(%s::text[]) AS k", (KEYS[kind],))
    else:
        cur.executemany(f"{insert} VALUES ('t', '1', ?)", [(k,) for k in KEYS[kind]])
    cur.execute("COMMIT")
    conn.close()
    lanes = dict(query(db, "SELECT lane, count(*) FROM outbox GROUP BY lane"))
    assert set(lanes) == set(range(64))
    assert 78 <= min(lanes.values()) and max(lanes.values()) <= 312, sorted(lanes.values())


def test_lanes_of_odd_keys(sluice, db):
    """Never negative and never null, also for keys and ids that producers should not use."""
    sluice.run("init", "--lanes", 7, db=db)
    keys = ["", " ", "\U0010ffff" * 128, "\U0010ffff" * 3, "x" * 512, "\u0001", "-1", None]
    for key in keys:
        for _ in range(2):
            query(db, "INSERT INTO outbox (topic, payload, entity_key) VALUES ('t', '1', ?)", key)
    lanes = query(db, "SELECT entity_key, min(lane), max(lane) FROM outbox WHERE entity_key IS NOT NULL GROUP BY entity_key")
    assert len(lanes) == len(keys) - 1
    assert all(low == high and 0 <= low < 7 for _, low, high in lanes)
    assert query(db, "SELECT count(*) FROM outbox WHERE lane IS NULL OR lane < 0 OR lane > 6") == [(0,)]


def test_lane_of_a_negative_id(sluice, db):
    sluice.run("init", db=db)
    query(db, "INSERT INTO outbox (id, topic, payload) VALUES (-5, 't', '1')")
    assert query(db, "SELECT count(*) FROM outbox WHERE lane >= 0") == [(1,)]


# -- Adopting an existing table ------------------------------------------------------------------

ADOPTED = """
columns:
  topic: aggregate_type
  entity_key: aggregate_id
  attempts: retry_count
table: outbox_events
"""


def existing_table(url, payload_type):
    id_type = "bigserial PRIMARY KEY" if is_postgres(url) else "INTEGER PRIMARY KEY AUTOINCREMENT"
    created = "created_at timestamp NOT NULL DEFAULT now()" if is_postgres(url) else \
        "created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP"
    query(url, f"CREATE TABLE outbox_events (id {id_type}, aggregate_type varchar(255) NOT NULL,"
               " aggregate_id varchar(255) NOT NULL, event_type varchar(255) NOT NULL,"
               f" payload {payload_type} NOT NULL, status varchar(20) NOT NULL DEFAULT 'PENDING',"
               f" retry_count integer NOT NULL DEFAULT 0, {created})")


def insert_existing(url, n):
    """As the application always did."""
    for i in range(n):
        query(url, "INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)"
                   " VALUES ('Order', ?, 'OrderPaid', ?)", f"o{i}", f'{{"n":{i},"s":"é"}}')


@pytest.fixture(params=["bytea", "BLOB", "TEXT"])
def adopted(request, tmp_path):
    """(URL, settings) of a database with such a table, one for each type that a payload may have."""
    url = request.getfixturevalue("pgdb" if request.param == "bytea" else "sqlitedb")
    existing_table(url, request.param)
    conf = tmp_path / "sluice.yaml"
    conf.write_text(ADOPTED)
    return url, conf


def test_adopted_from_end_to_end(sluice, adopted, tmp_path):
    db, conf = adopted
    insert_existing(db, 3)
    said = sluice.run("init", "-c", conf, db=db).stdout
    assert re.match(r"adopted table outbox_events, \d+ columns added", said)
    assert "up to date" in sluice.run("init", "-c", conf, db=db).stdout
    insert_existing(db, 2)
    assert json.loads(sluice.run("status", "--json", "-c", conf, db=db).stdout)["due"] == 5

    out = tmp_path / "out.jsonl"
    sluice.run("run", "-c", conf, "--sink", f"file:{out}", "--drain", db=db)
    messages = {id: message("Order", f"o{i}", f'{{"n":{i},"s":"é"}}') for id, i in enumerate([0, 1, 2, 0, 1], 1)}
    check(messages, read_sink(out), least=5)
    line = json.loads(out.read_text().splitlines()[0])
    assert (line["type"], line["attempt"]) == ("OrderPaid", 1)
    assert query(db, "SELECT count(*) FROM outbox_events") == [(0,)]


def test_adopted_tables_can_be_pushed_to_retried_and_buried(sluice, adopted):
    db, conf = adopted
    sluice.run("init", "-c", conf, db=db)
    sluice.run("push", "-c", conf, "--topic", "Order", "--key", "o1", "--type", "T", "--headers", "a=1", '{"n":1}', db=db)
    insert_existing(db, 1)

    def pull():
        return [json.loads(text) for text in sluice.run("pull", "-c", conf, db=db).stdout.splitlines()]
    first, second = pull()
    assert (first["payload"], first["headers"], first["type"]) == ({"n": 1}, {"a": "1"}, "T")
    sluice.run("pull", "-c", conf, "--retry", "--reason", "why", first["receipt"], db=db)
    sluice.run("pull", "-c", conf, "--bury", "--reason", "never", second["receipt"], db=db)
    assert query(db, "SELECT retry_count, last_error FROM outbox_events") == [(1, "why")]
    [dead] = query(db, "SELECT * FROM outbox_events_dead")
    assert any(v in (b'{"n":0,"s":"\xc3\xa9"}', '{"n":0,"s":"é"}') for v in dead), dead
    [again] = pull()
    assert (again["payload"], again["attempt"]) == ({"n": 1}, 2)
    sluice.run("pull", "-c", conf, "--ack", again["receipt"], db=db)


def test_a_payload_of_text_becomes_bytes_as_the_hint_says(sluice, pgdb, tmp_path):
    conf = tmp_path / "sluice.yaml"
    conf.write_text(ADOPTED)
    existing_table(pgdb, "text")
    insert_existing(pgdb, 2)
    done = sluice.run("init", "-c", conf, db=pgdb, check=1)
    assert "column 'payload' of table 'outbox_events' is text" in done.stderr
    hint = re.search(r"TYPE bytea USING convert_to\(\.\.\., 'UTF8'\)", done.stderr).group(0)
    query(pgdb, "ALTER TABLE outbox_events ALTER COLUMN payload " + hint.replace("...", "payload"))
    sluice.run("init", "-c", conf, db=pgdb)
    out = tmp_path / "out.jsonl"
    sluice.run("run", "-c", conf, "--sink", f"file:{out}", "--drain", db=pgdb)
    check({id: message("Order", f"o{id - 1}", f'{{"n":{id - 1},"s":"é"}}') for id in (1, 2)}, read_sink(out), least=2)


@pytest.mark.parametrize("kind, columns, words", [
    ("pgdb", "id uuid, payload bytea", ["column 'id'", "uuid", "hint: "]),
    ("pgdb", "id text, payload bytea", ["column 'id'", "text", "hint: "]),
    ("pgdb", "id bigint, payload jsonb", ["column 'payload'", "jsonb", "hint: "]),
    ("pgdb", "id bigint, payload varchar(99)", ["column 'payload'", "character varying", "hint: "]),
    ("pgdb", "id bigint, data bytea", ["no column 'payload'", "columns: payload=NAME"]),
    ("pgdb", "event_id bigint, payload bytea", ["no column 'id'", "columns: id=NAME"]),
    ("sqlitedb", "id TEXT PRIMARY KEY, payload BLOB", ["column 'id'", "text", "AUTOINCREMENT"]),
    ("sqlitedb", "id INTEGER PRIMARY KEY, payload BLOB", ["column 'id'", "AUTOINCREMENT"]),
    ("sqlitedb", "id INTEGER PRIMARY KEY AUTOINCREMENT, payload JSON", ["column 'payload'", "json", "BLOB or TEXT"]),
    ("sqlitedb", "id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB", ["no column 'payload'", "columns: payload=NAME"]),
    ("sqlitedb", "event_id INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB", ["no column 'id'", "columns: id=NAME"]),
])
def test_tables_that_cannot_be_adopted(sluice, request, kind, columns, words):
    db = request.getfixturevalue(kind)
    query(db, f"CREATE TABLE outbox ({columns})")
    done = sluice.run("init", db=db, check=1)
    for word in words:
        assert word in done.stderr
    assert tables(db) == ["outbox"], "nothing is left behind"


def test_nulls_of_an_adopted_table(sluice, db, tmp_path):
    """It was somebody else's, and may hold anything: nothing is stuck, nothing is skipped."""
    id_type = "bigserial PRIMARY KEY" if is_postgres(db) else "INTEGER PRIMARY KEY AUTOINCREMENT"
    time_type = "timestamptz" if is_postgres(db) else "TEXT"
    query(db, f"CREATE TABLE outbox (id {id_type}, topic text, payload {'bytea' if is_postgres(db) else 'BLOB'}, event_type"
              f" text, attempts integer, available_at {time_type}, created_at {time_type}, content_type text)")
    query(db, "INSERT INTO outbox (topic) VALUES (NULL)")
    query(db, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    sluice.run("init", db=db)
    for hold in ("lease", "transaction"):
        out = tmp_path / f"{hold}.jsonl"
        sluice.run("run", "--sink", f"file:{out}", "--drain", "--hold", hold, "--workers", 1, db=db)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(line["topic"], line["payload"], line["attempt"]) for line in lines] == [("", None, 1), ("t", 1, 1)]
        query(db, "INSERT INTO outbox (topic) VALUES (NULL)")
        query(db, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")


@pytest.mark.parametrize("column", ["topic varchar(20)", "attempts smallint", "entity_key bigint", "entity_key uuid",
                                    "available_at text", "created_at text", "headers text", "epoch text",
                                    "attempts text", "leased_until integer"])
def test_other_columns_of_a_wrong_type(sluice, pgdb, column):
    """Either it works from end to end, or init says which column is wrong."""
    query(pgdb, f"CREATE TABLE outbox (id bigserial, payload bytea, {column})")
    done = sluice.run("init", db=pgdb, check=False)
    if done.returncode == 0:
        sluice.run("run", "--sink", "null:", "--drain", db=pgdb)
    else:
        assert done.returncode == 1 and f"column '{column.split()[0]}'" in done.stderr and "hint: " in done.stderr
        assert tables(pgdb) == ["outbox"]


@pytest.mark.parametrize("name, type", [("held", "boolean"), ("held", "text"), ("delayed", "boolean"), ("lane", "integer"), ("lane", "text")])
def test_columns_whose_names_are_ours(sluice, db, name, type):
    """Another's is refused, whatever its type, and mapping helps."""
    id, payload = ("bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "bytea") if is_postgres(db) else \
        ("INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB")
    query(db, f"CREATE TABLE outbox (id {id}, topic text, entity_key text, payload {payload}, {name} {type})")
    query(db, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    done = sluice.run("init", db=db, check=1)
    assert f"column '{name}' of table 'outbox'" in done.stderr and f"hint: map {name} to another name" in done.stderr
    assert tables(db) == ["outbox"]
    for command in (["init"], ["run", "--sink", "null:", "--drain"]):
        sluice.run(*command, "--columns", f"{name}=our_own", db=db)
    assert query(db, "SELECT count(*) FROM outbox") == [(0,)]


# -- Least privilege -----------------------------------------------------------------------------

GRANTS = """
CREATE ROLE {p}_producer LOGIN;
CREATE ROLE {p}_relay LOGIN;
GRANT INSERT ON outbox TO {p}_producer;
GRANT SELECT, UPDATE, DELETE ON outbox TO {p}_relay;
GRANT SELECT, INSERT, UPDATE ON outbox_dead TO {p}_relay;
GRANT SELECT ON outbox_meta TO {p}_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_keys, outbox_nodes, outbox_claims TO {p}_relay;
GRANT SELECT, UPDATE ON outbox_lanes TO {p}_relay;
GRANT SELECT ON outbox_positions TO {p}_relay;
GRANT SELECT, UPDATE, DELETE ON outbox_idempotency TO {p}_relay;
GRANT SELECT (idempotency_key) ON outbox_consumed TO {p}_relay;
GRANT USAGE ON SEQUENCE outbox_epoch TO {p}_relay;
"""


def as_role(url, role):
    return url.replace("postgres@", f"{role}@")


def test_least_privilege(sluice, pg, pgdb):
    """A producer may insert and nothing else; the relay may do its work and no more."""
    sluice.run("init", db=pgdb)
    p = f"least_{os.getpid()}"
    pg.sql(GRANTS.format(p=p), pgdb.rpartition("/")[2])
    producer, relay = as_role(pgdb, f"{p}_producer"), as_role(pgdb, f"{p}_relay")

    query(producer, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '1')")
    query(producer, "INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', '1', 'i') ON CONFLICT DO NOTHING")
    for sql in ("SELECT 1 FROM outbox", "DELETE FROM outbox", "UPDATE outbox SET topic = 'x'", "SELECT 1 FROM outbox_dead",
                "TRUNCATE outbox", "DROP TABLE outbox", "SELECT 1 FROM outbox_idempotency", "DELETE FROM outbox_idempotency",
                "INSERT INTO outbox_idempotency (idempotency_key) VALUES ('x')"):
        assert "permission denied" in refuses(producer, sql) or "must be owner" in refuses(producer, sql)
    for sql in ("INSERT INTO outbox (topic, payload) VALUES ('t', '1')", "TRUNCATE outbox", "DROP TABLE outbox",
                "UPDATE outbox_meta SET value = '9'", "DELETE FROM outbox_dead"):
        assert "permission denied" in refuses(relay, sql) or "must be owner" in refuses(relay, sql)

    pulled = [json.loads(text) for text in sluice.run("pull", db=relay).stdout.splitlines()]
    sluice.run("pull", "--bury", pulled[0]["receipt"], db=relay)
    sluice.run("pull", "--retry", pulled[1]["receipt"], db=relay)
    assert json.loads(sluice.run("status", "--json", db=relay).stdout)["dead"] == 1
    for strategy in ("lanes", "guard", "advisory", "skip-locked"):
        query(producer, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '1')")
        sluice.run("run", "--sink", "null:", "--drain", "--strategy", strategy, db=relay)
        assert query(pgdb, "SELECT count(*) FROM outbox") == [(0,)]

    done = sluice.run("init", db=as_role(pgdb, f"{p}_relay"), check=False)
    assert done.returncode in (0, 1)
    done = sluice.run("run", "--sink", "null:", "--drain", db=producer, check=1)
    assert "permission denied" in done.stderr and "hint: " in done.stderr


def test_sluice_push_as_a_producer(sluice, pg, pgdb):
    """The command checks the schema first, for which it must see outbox_meta."""
    sluice.run("init", db=pgdb)
    p = f"push_{os.getpid()}"
    pg.sql(GRANTS.format(p=p) + f"GRANT SELECT ON outbox_meta TO {p}_producer;", pgdb.rpartition("/")[2])
    producer = as_role(pgdb, f"{p}_producer")
    sluice.run("push", "--topic", "t", "1", db=producer)
    sluice.run("push", "--lines", "-", db=producer, input='{"topic":"t","payload":1,"idempotency_key":"i"}\n' * 2)
    assert query(pgdb, "SELECT count(*) FROM outbox") == [(2,)]
