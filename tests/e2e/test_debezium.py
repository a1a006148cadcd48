"""Layout debezium: the table of Debezium's outbox event router as it is, and on the other side what Debezium sends.

What is expected here is written by Debezium's documentation ("Outbox Event Router", and for the bytes Kafka Connect's
StringConverter and SimpleHeaderConverter), not by what Sluice does.
"""
import json
import uuid

import psycopg2
import pytest

from harness import connect, is_postgres, query

# The table of the documentation.
TABLE = """CREATE TABLE outbox (id uuid NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL,
           aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload {payload} {more})"""
INSERT = "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (?, ?, ?, ?, ?)"
ORDER = '{"id": 1, "orderDate": "2019-01-31T12:13:01", "customerId": 123}'  # as jsonb writes it, with its blanks
LAYOUT = ("--layout", "debezium")


def make(url, payload="jsonb", more=""):
    query(url, TABLE.format(payload=payload if is_postgres(url) else payload.replace("bytea", "blob"), more=more))


def insert(url, payload=ORDER, topic="order", key="1", kind="OrderCreated"):
    """Returns its id."""
    id = str(uuid.uuid4())
    query(url, INSERT, id, topic, key, kind, payload)
    return id


def flag(**options):
    """Options of the router, with _ for their dots, as one flag."""
    text = ",".join(f"{name.replace('_', '.')}=" + value.replace("\\", "\\\\").replace(",", "\\,")
                    for name, value in options.items())
    return [*LAYOUT, "--debezium", text]


def lines(sluice, db, *args, layout=LAYOUT):
    """What a node delivers."""
    out = sluice.run("run", "--sink", "stdout:", "--drain", *layout, *args, db=db).stdout
    return [json.loads(line) for line in out.splitlines()]


# -- What is sent ----------------------------------------------------------------------------------

def test_the_message_of_the_documentation(sluice, db):
    """Topic by aggregatetype, key, payload, and the id as the only header."""
    make(db)
    sluice.run("init", *LAYOUT, db=db)
    id = insert(db)
    (line,) = lines(sluice, db)
    assert (line["topic"], line["key"], line["headers"]) == ("order", "1", {"id": id})
    assert line["payload"] == json.loads(ORDER)


def murmur2(data):
    """The hash of Kafka's Java client, by its description: MurmurHash2 of 32 bits, this seed."""
    m, mask = 0x5bd1e995, 0xffffffff
    h = 0x9747b28c ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def kafka_topic(kafka, partitions=1):
    """A value of aggregatetype, whose topic is there."""
    name = f"order-{uuid.uuid4().hex[:12]}"
    kafka.create(f"outbox.event.{name}", partitions)
    return name


def run_kafka(sluice, db, kafka, *args, layout=LAYOUT):
    sluice.run("run", "--sink", f"kafka://{kafka.bootstrap()}", "--drain", *layout, *args, db=db)


@pytest.mark.parametrize("payload, stored, sent", [
    ("jsonb", '{"b":[1,2],"a":"ä"}', '{"a": "ä", "b": [1, 2]}'.encode()),
    ("json", '{"b":[1, 2],\n "a":"ä"}', '{"b":[1, 2],\n "a":"ä"}'.encode()),
    ("text", "no JSON: \\x00 %s $$", b"no JSON: \\x00 %s $$"),
    ("varchar(255)", '"quoted"', b'"quoted"'),
    ("bytea", bytes(range(256)), bytes(range(256))),
], ids=["jsonb", "json", "text", "varchar", "bytea"])
def test_records_byte_for_byte(sluice, pgdb, kafka, payload, stored, sent):
    """Value by StringConverter (bytea: BinaryDataConverter), key by StringConverter, partition by murmur2, one header."""
    make(pgdb, payload)
    sluice.run("init", *LAYOUT, db=pgdb)
    topic = kafka_topic(kafka, partitions=5)
    keys = ["1", "2", "42", "straße", "a much longer key than the others"]
    ids = {key.encode(): insert(pgdb, stored, topic, key) for key in keys}
    run_kafka(sluice, pgdb, kafka)
    records = kafka.read(f"outbox.event.{topic}")
    assert sorted(r.key for r in records) == sorted(ids)
    for r in records:
        assert r.value == sent
        assert r.headers == [("id", ids[r.key].encode())]
        assert r.partition == (murmur2(r.key) & 0x7fffffff) % 5


@pytest.mark.parametrize("option, sent", [("false", [None, b"", b" \t\n", b"0"]), ("true", [None, None, None, b"0"])])
def test_tombstones(sluice, pgdb, kafka, option, sent):
    """StringConverter makes null of no payload, whatever the option says; the option makes it of an empty one, too,
    where empty is what Java's trim leaves nothing of."""
    make(pgdb, "text")
    layout = flag(route_tombstone_on_empty_payload=option)
    sluice.run("init", *layout, db=pgdb)
    topic = kafka_topic(kafka)
    for payload in (None, "", " \t\n", "0"):
        insert(pgdb, payload, topic)
    run_kafka(sluice, pgdb, kafka, layout=layout)
    assert [r.value for r in kafka.read(f"outbox.event.{topic}")] == sent


def test_empty_payloads_in_either_database(sluice, db):
    """Without a broker: no payload is null in a line, and blanks are a text."""
    make(db, "text")
    layout = flag(route_tombstone_on_empty_payload="true")
    sluice.run("init", *layout, db=db)
    for payload in (None, "", " \r\n\t", "null", "x"):
        insert(db, payload)
    got = lines(sluice, db, layout=layout)
    assert [line["payload"] for line in got] == [None, None, None, None, "x"]
    assert [line["key"] for line in got] == ["1"] * 5


def test_options_of_the_router(sluice, pgdb, kafka):
    """Other columns, another topic, headers of every type that is taken, and the record's time."""
    query(pgdb, """CREATE TABLE outbox (event_id uuid PRIMARY KEY, kind text, entity bigint, body jsonb, tenant uuid,
                   n smallint, flag boolean, doc json, note text, at timestamp)""")
    layout = flag(table_field_event_id="event_id", table_field_event_key="entity", table_field_event_payload="body",
                  table_field_event_timestamp="at", route_by_field="kind", route_topic_replacement="${routedByValue}.v1",
                  table_fields_additional_placement="kind:header:eventType,tenant:header,n:header, flag : header,"
                                                    "doc:header:d,note:header:none")
    sluice.run("init", *layout, db=pgdb)
    topic = f"order-{uuid.uuid4().hex[:12]}"
    kafka.create(f"{topic}.v1")
    id, tenant = str(uuid.uuid4()), str(uuid.uuid4())
    conn = connect(pgdb)
    cur = conn.cursor()
    cur.execute("SET TIME ZONE 'Asia/Tokyo'")
    cur.execute("INSERT INTO outbox VALUES (%s, %s, 7, '{}', %s, -3, true, '{\"x\":1}', NULL, '2019-05-03 14:31:34.484999')",
                (id, topic, tenant))
    conn.close()
    run_kafka(sluice, pgdb, kafka, layout=layout)
    (r,) = kafka.read(f"{topic}.v1")
    assert (r.key, r.value) == (b"7", b"{}")
    assert dict(r.headers) == {"id": id.encode(), "eventType": topic.encode(), "tenant": tenant.encode(), "n": b"-3",
                               "flag": b"true", "d": b'{"x":1}', "none": None}
    assert len(r.headers) == 7
    assert r.timestamp == 1556893894484  # without a zone it is UTC, and milliseconds are cut


def test_settings_that_are_given_win(sluice, pgdb, kafka):
    make(pgdb)
    sluice.run("init", *LAYOUT, db=pgdb)
    topic = kafka.new_topic()
    insert(pgdb)
    run_kafka(sluice, pgdb, kafka, "--target", topic, "--format", "raw")
    (r,) = kafka.read(topic)
    assert {"id", "sluice-id", "sluice-type"} <= {name for name, _ in r.headers}


def test_the_trace_of_the_producer(sluice, db):
    """The column has a text of java.util.Properties: comments, escapes, line ends of either kind."""
    make(db, more=", tracingspancontext text")
    sluice.run("init", *LAYOUT, db=db)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    texts = [f"#Sat May 04\ntraceparent={parent}\n", f"tracestate=rojo\\=1,congo\\:2\r\ntraceparent={parent}\r\n",
             "uber-trace-id=1\\:2\n", "", None]
    for text in texts:
        query(db, "INSERT INTO outbox VALUES (?, 'order', '1', 'x', '{}', ?)", str(uuid.uuid4()), text)
    headers = [line["headers"] for line in lines(sluice, db)]
    assert all(h.pop("id") for h in headers)
    assert headers == [{"traceparent": parent}, {"traceparent": parent, "tracestate": "rojo=1,congo:2"}, {}, {}, {}]


# -- What is an event ------------------------------------------------------------------------------

def test_an_insert_is_an_event_and_nothing_else_is(sluice, db):
    """As for a connector that reads the log: a row may go in the same transaction (remove-after-insert), and an
    update is nothing; what is rolled back has never been."""
    make(db)
    sluice.run("init", *LAYOUT, db=db)
    conn = connect(db)
    cur = conn.cursor()

    def run(sql, *args):
        cur.execute(sql.replace("?", "%s") if is_postgres(db) else sql, args)

    ids = [str(uuid.uuid4()) for _ in range(3)]
    run("BEGIN")
    run(INSERT, ids[0], "order", "1", "a", "{}")
    run("DELETE FROM outbox WHERE id = ?", ids[0])
    run("COMMIT")
    run("BEGIN")
    run(INSERT, ids[1], "order", "1", "b", "{}")
    run("ROLLBACK")
    run(INSERT, ids[2], "order", "1", "c", "{}")
    run("UPDATE outbox SET type = 'changed', payload = '[]'")
    conn.close()
    got = lines(sluice, db)
    assert [(line["headers"]["id"], line["type"], line["payload"]) for line in got] == [(ids[0], "a", {}), (ids[2], "c", {})]
    assert query(db, "SELECT count(*) FROM outbox") == [(1,)]  # theirs to clean up
    assert query(db, "SELECT count(*) FROM outbox_sluice") == [(0,)]


def test_order_of_a_key(sluice, db, ordered):
    make(db)
    sluice.run("init", *LAYOUT, db=db)
    conn = connect(db)
    cur = conn.cursor()
    cur.execute("BEGIN")
    for i in range(300):
        cur.execute(INSERT.replace("?", "%s") if is_postgres(db) else INSERT,
                    (str(uuid.uuid4()), "order", str(i % 7), "x", json.dumps({"n": i})))
    cur.execute("COMMIT")
    conn.close()
    by_key = {}
    for line in lines(sluice, db, "--strategy", ordered, "--workers", "4"):
        by_key.setdefault(line["key"], []).append(line["payload"]["n"])
    assert by_key == {str(k): list(range(k, 300, 7)) for k in range(7)}


def test_dead_letters_keep_the_id(sluice, db):
    """A topic that Kafka cannot have; then it can."""
    make(db)
    sluice.run("init", *LAYOUT, db=db)
    id = insert(db, topic="no/topic")
    sluice.run("run", "--sink", "kafka://127.0.0.1:9", "--drain", "--on-failure", "skip", *LAYOUT, db=db)
    assert query(db, "SELECT count(*) FROM outbox_sluice_dead") == [(1,)]
    sluice.run("dead", "resend", "--all", "--yes", *LAYOUT, db=db)
    (line,) = lines(sluice, db)
    assert line["headers"] == {"id": id}


def test_a_producer_needs_no_new_right(sluice, pg, pgdb):
    """It may insert into its own table, and knows of no other."""
    make(pgdb)
    sluice.run("init", *LAYOUT, db=pgdb)
    role = f"producer_{uuid.uuid4().hex[:12]}"
    query(pgdb, f"CREATE ROLE {role}")
    try:
        query(pgdb, f"GRANT INSERT ON outbox TO {role}")
        conn = connect(pgdb)
        cur = conn.cursor()
        cur.execute(f"SET ROLE {role}")
        cur.execute("SET search_path = pg_catalog")  # nor does it depend on the path of a session
        cur.execute("INSERT INTO public.outbox VALUES (%s, 'order', '1', 'x', '{}')", (str(uuid.uuid4()),))
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cur.execute("SELECT 1 FROM public.outbox_sluice")
        conn.close()
    finally:
        query(pgdb, f"DROP OWNED BY {role}")
        query(pgdb, f"DROP ROLE {role}")
    assert len(lines(sluice, pgdb)) == 1


# -- Making ----------------------------------------------------------------------------------------

def test_their_table_stays_as_it_is(sluice, pgdb):
    """No column more, and no row written anew: the lock is short however large it is."""
    make(pgdb)
    insert(pgdb)
    what = """SELECT pg_relation_filenode('outbox'), array_agg(attname::text ORDER BY attnum)
                FROM pg_attribute WHERE attrelid = 'outbox'::regclass AND attnum > 0"""
    before = query(pgdb, what)
    sluice.run("init", "--existing", "skip", *LAYOUT, db=pgdb)
    assert query(pgdb, what) == before
    said = [sluice.run("init", *LAYOUT, db=pgdb).stdout for _ in range(2)]
    assert said[0] == said[1] and "outbox_sluice" in said[0]


@pytest.mark.parametrize("what", ["send", "skip"])
def test_rows_that_are_there_already(sluice, db, what):
    """Nobody but the operator knows whether Debezium has sent them: they are asked, once."""
    make(db)
    ids = [insert(db, payload=json.dumps({"n": n})) for n in range(3)]
    done = sluice.run("init", *LAYOUT, db=db, check=1)
    assert "has rows already" in done.stderr and "--existing skip" in done.stderr and "--existing send" in done.stderr
    assert "not captured" in sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, db=db, check=1).stderr
    sluice.run("init", "--existing", what, *LAYOUT, db=db)
    sluice.run("init", "--existing", "send", *LAYOUT, db=db)  # it is captured: there is nothing to ask
    new = insert(db)
    sent = [line["headers"]["id"] for line in lines(sluice, db)]
    assert (sorted(sent[:-1]), sent[-1]) == (sorted(ids) if what == "send" else [], new)


def test_rows_that_are_there_go_by_their_time(sluice, db):
    make(db, more=", at timestamp")
    for n, at in enumerate(["2024-01-03", "2024-01-01", "2024-01-02"]):
        query(db, "INSERT INTO outbox VALUES (?, 'order', '1', ?, '{}', ?)", str(uuid.uuid4()), str(n), at)
    layout = flag(table_field_event_timestamp="at")
    sluice.run("init", "--existing", "send", *layout, db=db)
    assert [line["type"] for line in lines(sluice, db, layout=layout)] == ["1", "2", "0"]


def test_an_insert_during_init_is_not_lost(sluice, pgdb):
    """It waits for a producer that has inserted and not committed; that row is one that is there already."""
    make(pgdb)
    conn = connect(pgdb)
    cur = conn.cursor()
    cur.execute("BEGIN")
    cur.execute(INSERT.replace("?", "%s"), (str(uuid.uuid4()), "order", "1", "x", "{}"))
    done = sluice.run("init", "--existing", "send", *LAYOUT, db=pgdb, check=1)
    assert "could not be locked" in done.stderr  # for a while; producers do not queue behind it for ever
    cur.execute("COMMIT")
    conn.close()
    sluice.run("init", "--existing", "send", *LAYOUT, db=pgdb)
    assert len(lines(sluice, pgdb)) == 1


def test_any_name(sluice, db):
    """Tables, columns and headers of any name are quoted."""
    names = ['my-field', 'a "b" c', "100%s", "it's", "select", "ünïcode", "payload"]
    columns = ", ".join('"' + name.replace('"', '""') + '" text' for name in names)
    query(db, f'CREATE TABLE "Out$box" ({columns})')
    layout = ["--table", "Out$box", *flag(
        table_field_event_id=names[0], table_field_event_key=names[1], route_by_field=names[2],
        table_fields_additional_placement=f"{names[3]}:header:{names[3]} %s %%,{names[4]}:header:{names[5]},"
                                          f"{names[5]}:header:sluice_outbox")]
    sluice.run("init", *layout, db=db)
    query(db, 'INSERT INTO "Out$box" VALUES (?, ?, ?, ?, ?, ?, ?)', "i", "k", "t", "v'1", 'v"2', "ß", "{}")
    (line,) = lines(sluice, db, layout=layout)
    assert (line["topic"], line["key"]) == ("t", "k")
    assert line["headers"] == {"id": "i", "it's %s %%": "v'1", "ünïcode": 'v"2', "sluice_outbox": "ß"}


def test_a_schema_of_its_own(sluice, pgdb):
    query(pgdb, 'CREATE SCHEMA "App"')
    query(pgdb, TABLE.format(payload="jsonb", more="").replace("outbox", '"App".outbox'))
    layout = ["--table", "App.outbox", *LAYOUT]
    sluice.run("init", *layout, db=pgdb)
    query(pgdb, INSERT.replace("outbox", '"App".outbox'), str(uuid.uuid4()), "order", "1", "x", "{}")
    assert len(lines(sluice, pgdb, layout=layout)) == 1
    assert query(pgdb, "SELECT to_regclass('\"App\".outbox_sluice_dead') IS NOT NULL") == [(True,)]


# -- Refused ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("option, value, said", [
    ("table_expand_json_payload", "true", "table.expand.json.payload=true is not supported"),
    ("route_topic_regex", "(.*)order", "route.topic.regex=(.*)order is not supported"),
    ("route_topic_replacement", "x.$1", "route.topic.replacement: 'x.$1' is not supported"),
    ("table_fields_additional_placement", "type:envelope", "'type:envelope' is not supported"),
    ("table_fields_additional_placement", "type:partition:x", "'type:partition:x' is not supported"),
    ("table_fields_additional_placement", "type", "'type' is not column:header"),
    ("table_field_event_schema_version", "v", "table.field.event.schema.version=v is not supported"),
    ("table_op_invalid_behavior", "fatal", "table.op.invalid.behavior=fatal is not supported"),
    ("route_by_feild", "kind", "did you mean route.by.field?"),
])
def test_what_is_not_supported_is_named(sluice, sqlitedb, option, value, said):
    make(sqlitedb)
    done = sluice.run("init", *flag(**{option: value}), db=sqlitedb, check=2)
    assert said in done.stderr


@pytest.mark.parametrize("option, value, said", [
    ("table_field_event_key", "nope", "has no column 'nope'"),
    ("table_fields_additional_placement", "nope:header", "has no column 'nope'"),
    ("table_fields_additional_placement", "at:header", "is timestamp with time zone"),
    ("table_field_event_payload", "n", "is numeric"),
    ("table_field_event_timestamp", "type", "is character varying"),
])
def test_columns_that_will_not_do(sluice, pgdb, option, value, said):
    make(pgdb, more=", at timestamptz, n numeric")
    done = sluice.run("init", *flag(**{option: value}), db=pgdb, check=1)
    assert said in done.stderr and option.replace("_", ".") in done.stderr
    assert query(pgdb, "SELECT to_regclass('outbox_sluice') IS NULL") == [(True,)]


def test_a_missing_column_may_be_left_out(sluice, db):
    make(db)
    layout = flag(table_fields_additional_placement="nope:header,type:header",
                  table_fields_additional_error_on_missing="false")
    sluice.run("init", *layout, db=db)
    id = insert(db)
    (line,) = lines(sluice, db, layout=layout)
    assert line["headers"] == {"id": id, "type": "OrderCreated"}


def test_settings_that_contradict_each_other(sluice, sqlitedb):
    for args, said in ((["--debezium", "route.by.field=kind"], "layout: debezium only"),
                       ([*LAYOUT, "--columns", "topic=kind"], "columns has no meaning")):
        assert said in sluice.run("init", *args, db=sqlitedb, check=2).stderr
    assert "cannot be printed" in sluice.run("init", "--print", *LAYOUT, db=sqlitedb, check=1).stderr
    assert "--existing is for" in sluice.run("init", "--existing", "send", db=sqlitedb, check=1).stderr
    assert "make it first" in sluice.run("init", *LAYOUT, db=sqlitedb, check=1).stderr


def test_a_node_does_not_run_beside_a_table_that_is_not_captured(sluice, db):
    """Made anew by a migration, say, or with other options: nothing would tell that messages are missing."""
    make(db)
    sluice.run("init", *LAYOUT, db=db)
    layout = flag(table_fields_additional_placement="type:header")
    done = sluice.run("run", "--sink", "null:", "--drain", *layout, db=db, check=1)
    assert "other debezium options" in done.stderr and "sluice init" in done.stderr
    query(db, "DROP TABLE outbox")
    make(db)
    done = sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, db=db, check=1)
    assert "is not captured" in done.stderr
    sluice.run("init", *LAYOUT, db=db)
    insert(db)
    assert len(lines(sluice, db)) == 1


def test_a_table_that_took_the_place_of_another(sluice, pgdb):
    """Renamed, and made anew: the trigger went with the old one."""
    make(pgdb)
    sluice.run("init", *LAYOUT, db=pgdb)
    query(pgdb, "ALTER TABLE outbox RENAME TO outbox_old")
    query(pgdb, "ALTER INDEX outbox_pkey RENAME TO outbox_old_pkey")
    make(pgdb)
    assert "is not captured" in sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, db=pgdb, check=1).stderr
    sluice.run("init", *LAYOUT, db=pgdb)
    insert(pgdb)
    assert len(lines(sluice, pgdb)) == 1


def test_a_table_of_partitions(sluice, pgdb):
    """Whichever of them a row is inserted into, and by whichever name."""
    query(pgdb, TABLE.format(payload="jsonb", more=", day date NOT NULL").replace(" PRIMARY KEY", "") +
          " PARTITION BY RANGE (day)")
    query(pgdb, "CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')")
    for _ in range(2):
        sluice.run("init", *LAYOUT, db=pgdb)
    query(pgdb, "CREATE TABLE outbox_2 PARTITION OF outbox FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')")
    for n, (table, day) in enumerate([("outbox", "2024-01-05"), ("outbox", "2024-02-05"), ("outbox_2", "2024-02-06")]):
        query(pgdb, f"INSERT INTO {table} VALUES (?, 'order', '1', ?, '{{}}', ?)", str(uuid.uuid4()), str(n), day)
    assert [line["type"] for line in lines(sluice, pgdb)] == ["0", "1", "2"]


def test_a_trigger_that_is_disabled(sluice, pgdb):
    """No node starts, and the doctor says why."""
    def capture(state):
        done = sluice.run("doctor", "--json", *LAYOUT, db=pgdb, check=False)
        (found,) = [f for f in json.loads(done.stdout)["findings"] if f["check"] == "capture"]
        assert found["state"] == state
        return found

    make(pgdb)
    sluice.run("init", *LAYOUT, db=pgdb)
    assert "outbox_sluice" in capture("ok")["found"]
    query(pgdb, "ALTER TABLE outbox DISABLE TRIGGER USER")
    assert "disabled" in sluice.run("status", *LAYOUT, db=pgdb, check=1).stderr
    found = capture("bad")
    assert "disabled" in found["found"] and "sluice init" in found["do"]
    sluice.run("init", *LAYOUT, db=pgdb)
    capture("ok")
    insert(pgdb)
    assert len(lines(sluice, pgdb)) == 1


def test_from_a_file(sluice, db, tmp_path):
    """As an operator writes it: a mapping, with the names of the router."""
    make(db)
    conf = tmp_path / "sluice.yaml"
    conf.write_text('layout: debezium\ndebezium:\n  table.fields.additional.placement: "type:header:eventType"\n'
                    '  route.topic.replacement: "events.${routedByValue}"\n')
    sluice.run("init", "-c", conf, db=db)
    id = insert(db)
    (line,) = lines(sluice, db, layout=["-c", str(conf)])
    assert line["headers"] == {"id": id, "eventType": "OrderCreated"}
