"""What is committed arrives, bit for bit; what is not committed never does."""
import base64
import json
import os
import random

import pytest

import record
from checker import check, commit, committed, read_sink
from conftest import assert_in_order
from harness import connect, is_postgres, query, scaled

PRETTY = b'{\n  "paid": true,\r\n\t"lines": [\n    1,\n    2\n  ]\n}\n'
BIG_NUMBERS = b'[123456789012345678901234567890, 1.10, -0.0, 1e400, 0.1234567890123456789012345678901]'
NOISE = bytes(random.Random(1).randrange(256) for _ in range(1000))
DEEP = b"[" * 500 + b"]" * 500

PAYLOADS = {
    "object": b'{"paid":true}', "spaced": b' { "b" : 1, "a" : 2, "b" : 3 } ', "pretty": PRETTY,
    "string": b'"x"', "number": b"42", "true": b"true", "null": b"null", "array": b"[]", "big numbers": BIG_NUMBERS,
    "escapes": b'{"path":"C:\\\\dir","quote":"\\"","u":"\\u00e9\\ud83d\\ude00\\u0000"}', "deep": DEEP,
    "empty": b"", "blank": b" ", "text": "grüße, 世界 \U0001f30d".encode(), "lines of text": b"a\nb\r\nc\n",
    "broken JSON": b'{"paid":', "quotes": b"it's \"quoted\"; DROP TABLE outbox; --", "backslash": b"a\\b",
    "NUL": b"\x00", "NUL inside": b'{"a":\x00}', "control": bytes(range(32)), "bytes": bytes(range(256)), "noise": NOISE,
    "not UTF-8": b"caf\xe9", "overlong": b"\xc0\x80", "surrogate": b"\xed\xa0\x80", "cut": "é".encode()[:1],
    "base64 text": base64.b64encode(NOISE), "5 MB of JSON": b'{"a":"' + b"x" * 5_000_000 + b'"}',
    "5 MB of bytes": b"\xff\x00" * 2_500_000,
}


def deliver(sluice, db, *flags, out="out.jsonl"):
    """Runs until the table is empty; returns the lines of the sink, as text."""
    sluice.run("run", "--sink", f"file:{out}", "--drain", *flags, db=db)
    with open(os.path.join(sluice.cwd, out), encoding="utf-8", newline="\n") as f:
        return f.read().splitlines()


def by_id(lines):
    return {line["id"]: line for line in map(json.loads, lines)}


def in_id_order(lines):
    return sorted(lines, key=lambda text: json.loads(text)["id"])


CLAIMS = [["--strategy", "skip-locked", "--hold", "lease"], ["--strategy", "skip-locked", "--hold", "transaction"],
          ["--strategy", "advisory"], ["--strategy", "guard"], ["--strategy", "lanes"]]
every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda flags: flags[-1])


@pytest.mark.threads
def test_without_any_setting(sluice, tmp_path):
    """A new user's first minute: SQLite, in the current folder."""
    sluice.run("init")
    for i in range(3):
        sluice.run("push", "--topic", "orders", "--key", f"order:{i}", json.dumps({"n": i}))
    sluice.run("run", "--sink", "file:out.jsonl", "--drain")
    assert (tmp_path / "sluice.db").exists()
    lines = by_id((tmp_path / "out.jsonl").read_text().splitlines())
    assert sorted(lines) == [1, 2, 3]
    worker, epoch = lines[3].pop("worker"), lines[3].pop("epoch")
    assert lines[3] == {"id": 3, "topic": "orders", "key": "order:2", "type": "", "payload": {"n": 2}, "headers": {},
                        "attempt": 1}
    assert epoch >= 1
    assert worker.endswith(("/1", "/2", "/3", "/4"))
    assert query(f"sqlite:{tmp_path}/sluice.db", "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.threads
def test_ten_thousand_json_lines(sluice, db):
    n = scaled(10000)
    sluice.run("init", db=db)
    rng = random.Random(2)
    lines = "".join(f'{{"topic":"orders","key":"order:{i % 997}","payload":{{"n":{i}, "r":{rng.random():.17f}e1}}}}\n'
                    for i in range(n))
    assert sluice.run("push", "--lines", "-", db=db, input=lines).stdout == f"pushed {n} messages\n"

    messages = committed(db)
    sent = [line[line.index('"payload":') + 10:-1].encode() for line in lines.splitlines()]
    stored = [row[0] for row in query(db, "SELECT payload FROM outbox ORDER BY id")]
    assert [bytes(p) for p in stored] == sent  # in the order of the lines, too

    deliver(sluice, db)
    deliveries = read_sink(f"{sluice.cwd}/out.jsonl")
    summary = check(messages, deliveries, fenced=True, least=n)
    assert_in_order(deliveries)
    print(summary)
    assert summary.duplicates == 0
    assert query(db, "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.threads
@every_claim
def test_either_hold_delivers_each_message_once(sluice, db, claim):
    n = scaled(3000)
    sluice.run("init", db=db)
    messages = commit(db, n)
    deliver(sluice, db, *claim, "--batch", 100)
    deliveries = read_sink(f"{sluice.cwd}/out.jsonl")
    summary = check(messages, deliveries, fenced="transaction" not in claim, least=n)
    if "skip-locked" not in claim:
        assert_in_order(deliveries)
    print(summary)
    assert (summary.lines, summary.duplicates) == (n, 0)


def expected_member(payload, content_type):
    """How the file: sink must write a payload: its member's name, and the text of its value."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return "payload_base64", json.dumps(base64.b64encode(payload).decode())
    if content_type == "application/json":
        return "payload", text.replace("\n", " ").replace("\r", " ")
    return "payload", None


def assert_arrived(lines, payloads, content_types):
    assert len(lines) == len(payloads)
    for text in lines:
        line = json.loads(text)
        payload = payloads[line["topic"]]
        content_type = content_types[line["topic"]]
        assert line.get("content_type", "application/json") == content_type, line["topic"]
        member, value = expected_member(payload, content_type)
        if value is not None:
            assert f',"{member}":{value},' in text, line["topic"]
        else:
            assert line["payload"].encode() == payload, line["topic"]


def is_json(payload):
    try:
        json.loads(payload.decode("utf-8", "strict"))
    except (ValueError, RecursionError):
        return False
    return True


def guessed_type(payload):
    if is_json(payload):
        return "application/json"
    try:
        payload.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


def test_any_payload_comes_through_bit_for_bit(sluice, db):
    """From standard input, one message each; the content type is guessed."""
    sluice.run("init", db=db)
    for name, payload in PAYLOADS.items():
        sluice.run("push", "--topic", name, "-", db=db, input=payload)
    rows = query(db, "SELECT topic, payload, content_type FROM outbox ORDER BY id")
    assert {topic: payload for topic, payload, _ in rows} == PAYLOADS
    types = {topic: content_type for topic, _, content_type in rows}
    assert types == {name: guessed_type(payload) for name, payload in PAYLOADS.items()}
    assert_arrived(deliver(sluice, db), PAYLOADS, types)


def test_any_payload_as_base64_in_a_line(sluice, db, strategy):
    payloads = {name: p for name, p in PAYLOADS.items() if len(p) < 10_000 or strategy == "lanes"}
    sluice.run("init", db=db)
    lines = "".join(json.dumps({"topic": name, "content_type": guessed_type(payload),
                                "payload_base64": base64.b64encode(payload).decode()}) + "\n"
                    for name, payload in payloads.items())
    sluice.run("push", "--lines", "-", db=db, input=lines)
    assert dict(query(db, "SELECT topic, payload FROM outbox")) == payloads
    assert_arrived(deliver(sluice, db, "--strategy", strategy), payloads,
                   {name: guessed_type(p) for name, p in payloads.items()})


def test_json_in_a_line_is_kept_as_it_is_spelled(sluice, db):
    values = ['{"b":1,"a":2,"b":3}', "[1, 2]", '"x"', "42", "1.10", "1e400", "-0.0", "true", "null", '"\\u00e9"', '"é"',
              '""', "123456789012345678901234567890"]
    sluice.run("init", db=db)
    lines = "".join(f'{{"payload": {value} ,"topic":"t"}}\n' for value in values)
    sluice.run("push", "--lines", "-", db=db, input=lines)
    assert query(db, "SELECT payload, content_type FROM outbox ORDER BY id") == \
        [(value.encode(), "application/json") for value in values]
    for text, value in zip(in_id_order(deliver(sluice, db)), values, strict=True):
        assert f',"payload":{value},' in text


def test_text_in_a_line_is_text_if_it_says_so(sluice, db):
    sluice.run("init", db=db)
    sluice.run("push", "--lines", "-", db=db, input='{"topic":"t","content_type":"text/plain","payload":"a\\n\\u00e9"}\n')
    assert query(db, "SELECT payload FROM outbox") == [("a\né".encode(),)]
    assert json.loads(deliver(sluice, db)[0])["payload"] == "a\né"


def test_plain_sql_is_enough_for_a_producer(sluice, db):
    """The statement of the design, the same in every database."""
    sluice.run("init", db=db)
    query(db, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('orders', 'order:9182', '{\"paid\":true}')")
    [text] = deliver(sluice, db)
    assert text.startswith('{"id":1,"topic":"orders","key":"order:9182","type":"","payload":{"paid":true},"headers":{},'
                           '"attempt":1,"worker":"')


def test_bytes_by_plain_sql(sluice, db):
    """As a parameter of the right type, a payload needs no escaping."""
    sluice.run("init", db=db)
    for name, payload in PAYLOADS.items():
        query(db, "INSERT INTO outbox (topic, payload, content_type) VALUES (?, ?, ?)", name, payload, guessed_type(payload))
    assert_arrived(deliver(sluice, db), PAYLOADS, {name: guessed_type(p) for name, p in PAYLOADS.items()})


def test_text_with_backslashes_by_plain_sql(sluice, db):
    """PostgreSQL reads a text literal for a bytea column with its own escapes; convert_to does not."""
    payload = '{"path":"C:\\\\dir \\u00e9 é"}'
    value = "convert_to(?, 'UTF8')" if is_postgres(db) else "?"
    sluice.run("init", db=db)
    query(db, f"INSERT INTO outbox (topic, payload) VALUES ('x', {value})", payload)
    assert f',"payload":{payload},' in deliver(sluice, db)[0]


def test_all_that_belongs_to_a_message_travels(sluice, db):
    headers = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "x": "", "é\"\\": "ü\n\t\u0001"}
    line = {"topic": "orders/eu", "key": "order:1", "type": "OrderPaid", "content_type": "application/cloudevents+json",
            "headers": headers, "payload": {"paid": True}}
    sluice.run("init", db=db)
    sluice.run("push", "--lines", "-", db=db, input=json.dumps(line) + "\n")
    sluice.run("push", "--topic", "mails", "--type", "Welcome", "--headers", "a=1,b=x=y,c=p\\,q", "--content-type",
               "text/html; charset=utf-8", "<p>hello</p>", db=db)
    got = by_id(deliver(sluice, db, "--node", "n1"))
    assert {k: got[1][k] for k in line} == line
    assert got[2]["headers"] == {"a": "1", "b": "x=y", "c": "p,q"}
    assert (got[2]["key"], got[2]["type"], got[2]["content_type"], got[2]["payload"]) == \
        (None, "Welcome", "text/html; charset=utf-8", "<p>hello</p>")
    assert got[1]["worker"] in ("n1/1", "n1/2", "n1/3", "n1/4")
    assert [got[i]["attempt"] for i in got] == [1, 1]


def test_a_line_of_the_sink_can_be_pushed_again(sluice, db):
    sluice.run("init", db=db)
    sluice.run("push", "--topic", "t", "--key", "k", "--type", "T", "--headers", "a=1", "--content-type", "text/plain", "x",
               db=db)
    sluice.run("push", "--topic", "t", "-", db=db, input=b"\xff\x00")
    first = in_id_order(deliver(sluice, db, "--workers", 1))
    sluice.run("push", "--lines", "out.jsonl", db=db)
    second = in_id_order(deliver(sluice, db, "--workers", 1, out="again.jsonl"))
    same = ("topic", "key", "type", "content_type", "payload", "payload_base64", "headers")
    for a, b in zip(map(json.loads, first), map(json.loads, second), strict=True):
        assert {k: a[k] for k in same if k in a} == {k: b[k] for k in same if k in b}
        assert b["id"] == a["id"] + 2


def test_keys_are_bytes(sluice, db, strategy):
    """NULL is no key, empty is one, and nothing is folded: neither case nor Unicode forms."""
    keys = [None, "", "k", "K", "k ", "é", "e\u0301", "世界", "\U0001f511", 'a"b\\c', "x" * 512, "é" * 256, "\t\n"]
    sluice.run("init", db=db)
    lines = "".join(json.dumps({"topic": "t", "key": key, "payload": 1}) + "\n" for key in keys)
    sluice.run("push", "--lines", "-", db=db, input=lines)
    assert [row[0] for row in query(db, "SELECT entity_key FROM outbox ORDER BY id")] == keys
    got = by_id(deliver(sluice, db, "--strategy", strategy))
    assert [got[id]["key"] for id in sorted(got)] == keys


def test_stdout(sluice, db):
    n = scaled(1000)
    sluice.run("init", db=db)
    messages = commit(db, n)
    done = sluice.run("run", "--sink", "stdout:", "--drain", db=db)
    with open(f"{sluice.cwd}/captured", "w") as f:
        f.write(done.stdout)
    assert check(messages, read_sink(f"{sluice.cwd}/captured"), fenced=True).lines == n


def test_null_empties_the_table(sluice, db):
    n = scaled(1000)
    sluice.run("init", db=db)
    commit(db, n)
    done = sluice.run("run", "--sink", "null:", "--drain", db=db)
    assert done.stdout == "" and f"sent={n}" in done.stderr
    assert query(db, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_line_longer_than_a_pipe(sluice, db):
    """Through stdout, and whole: other lines come before and after it, not inside."""
    sluice.run("init", db=db)
    long = "x" * 300_000
    lines = "".join(json.dumps({"topic": f"t{i}", "payload": long if i % 3 == 0 else i}) + "\n" for i in range(12))
    sluice.run("push", "--lines", "-", db=db, input=lines)
    got = [json.loads(text) for text in sluice.run("run", "--sink", "stdout:", "--drain", "--batch", 2,
                                                   db=db).stdout.splitlines()]
    assert {line["topic"]: line["payload"] for line in got} == {f"t{i}": long if i % 3 == 0 else i for i in range(12)}
    assert len(got) == 12


def test_rolled_back_messages_never_appear(sluice, db):
    sluice.run("init", db=db)
    conn = connect(db)
    cur = conn.cursor()
    for end in ("ROLLBACK", "COMMIT", "ROLLBACK", "COMMIT"):
        cur.execute("BEGIN")
        cur.execute(f"INSERT INTO outbox (topic, payload) VALUES ('{end}', '1')")
        cur.execute(end)
    cur.execute("BEGIN")
    cur.execute("INSERT INTO outbox (topic, payload) VALUES ('connection lost', '1')")
    conn.close()
    assert [json.loads(text)["topic"] for text in deliver(sluice, db)] == ["COMMIT", "COMMIT"]


def test_a_late_commit_with_a_lower_id_is_not_lost(sluice, pgdb, strategy):
    """Ids are given at INSERT, not at COMMIT: a message may appear behind later ones."""
    sluice.run("init", db=pgdb)
    slow = connect(pgdb)
    cur = slow.cursor()
    cur.execute("BEGIN")
    cur.execute("INSERT INTO outbox (topic, payload) VALUES ('late', '1')")
    commit(pgdb, 10)
    assert sorted(by_id(deliver(sluice, pgdb, "--strategy", strategy))) == list(range(2, 12))
    cur.execute("COMMIT")
    slow.close()
    assert sorted(by_id(deliver(sluice, pgdb, "--strategy", strategy))) == list(range(1, 12))


@every_claim
def test_a_batch_is_bounded_in_bytes(sluice, db, recorded, claim):
    """It ends with the message that reaches the bound: a larger one is still taken; nothing is skipped."""
    sluice.run("init", "--lanes", 1, db=db)
    sizes = [10, 3000, 10, 5000, 900, 900, 900]
    for size in sizes:
        query(db, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('x', 'k', ?)", b"1" * size)
    node = sluice.start("run", "--sink", "file:out.jsonl", "--drain", *claim, "--batch-bytes", "1000", "--workers", 1, db=db,
                        env=recorded.env)
    node.wait(status=0)
    with open(f"{sluice.cwd}/out.jsonl") as f:
        assert [len(json.loads(text, parse_int=str)["payload"]) for text in f] == sizes
    batches, kind = [], None
    for e in record.read(recorded.folder):
        if e.kind == record.TAKEN:
            if kind != record.TAKEN:
                batches.append([])
            batches[-1].append(sizes[e.id - 1])
        kind = e.kind
    print(batches)
    assert max(sum(batch[:-1]) for batch in batches) < 1000 and len(batches) >= 4
