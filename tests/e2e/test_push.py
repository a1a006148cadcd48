"""sluice push: what is wrong is said, with its line, and never half pushed."""
import base64
import json
import os

import pytest

from harness import Sluice, is_postgres, query


@pytest.fixture(scope="module")
def lite(tmp_path_factory):
    """One for all that is refused: it stays empty."""
    folder = tmp_path_factory.mktemp("lite")
    url = f"sqlite:{folder}/outbox.db"
    Sluice(folder).run("init", db=url)
    return url


def topics(url):
    return [topic for (topic,) in query(url, "SELECT topic FROM outbox ORDER BY id")]


def lines(*members):
    return "".join((m if isinstance(m, str) else json.dumps(m)) + "\n" for m in members)


GOOD = {"topic": "t", "payload": 1}


# -- One message ---------------------------------------------------------------------------------

@pytest.mark.parametrize("args, words", [
    ([], ["which topic?", "hint: --topic T"]),
    (["x"], ["which topic?"]),
    (["--topic", "", "x"], ["which topic?"]),
    (["--topic", "t"], ["no payload", "hint: "]),
    (["--topic", "t", "a", "b"], ["one payload, not 2", "quote it"]),
    (["--topic"], ["--topic needs a value", "hint: --topic T"]),
    (["--topic", "--key", "k", "x"], ["--topic needs a value"]),
    (["--topci", "t", "x"], ["unknown flag --topci", "did you mean --topic?"]),
    (["--top", "t", "x"], ["unknown flag --top", "did you mean --topic?"]),
    (["--nonsense", "t", "x"], ["unknown flag --nonsense", "--help"]),
    (["-x"], ["unknown flag -x"]),
    (["--topic", "t", "--delay", "5", "x"], ["'5' will not do for delay", "30s"]),
    (["--topic", "t", "--delay", "-5s", "x"], ["too small for delay"]),
    (["--topic", "t", "--delay", "9999999d", "x"], ["too large for delay"]),
    (["--topic", "t", "--headers", "a", "x"], ["'a' will not do for headers", "NAME=VALUE"]),
    (["--topic", "t", "--headers", "a=1,a=2", "x"], ["headers has 'a' twice"]),
    (["--topic", "t", "--headers", "=1", "x"], ["will not do for headers"]),
    (["--topic", "t", "--quiet=perhaps", "x"], ["'perhaps' will not do for quiet", "true or false"]),
    (["--topic", "t", "--workers", "3", "x"], ["--workers is no flag of this command", "sluice run"]),
    (["--lines", "-", "--topic", "t"], ["--lines takes everything from its lines"]),
    (["--lines", "-", "--key", "k"], ["--lines takes everything"]),
    (["--lines", "-", "--delay", "1s"], ["--lines takes everything"]),
    (["--lines", "-", "--headers", "a=b"], ["--lines takes everything"]),
    (["--lines", "-", "x"], ["--lines takes everything"]),
    (["--lines"], ["--lines needs a value", "hint: --lines FILE"]),
])
def test_wrong_use(sluice, lite, args, words):
    done = sluice.run("push", *args, db=lite, check=2)
    assert done.stdout == "" and done.stderr.startswith("sluice push: ")
    for word in words:
        assert word in done.stderr
    assert topics(lite) == []


def test_one(sluice, box):
    assert sluice.run("push", "--topic", "a", "1", db=box).stdout == "pushed 1 message\n"
    assert sluice.run("push", "--quiet", "--topic", "b", "1", db=box).stdout == ""
    sluice.run("push", "--topic", "c", "--", "--flag-like", db=box)
    sluice.run("push", "--topic", "d", "", db=box)
    sluice.run("push", "--topic", "ü/\U0001f30d", "1", db=box)
    sluice.run("push", "--topic=e", "--key=", "1", db=box)
    rows = query(box, "SELECT topic, entity_key, payload FROM outbox ORDER BY id")
    assert rows == [("a", None, b"1"), ("b", None, b"1"), ("c", None, b"--flag-like"), ("d", None, b""),
                    ("ü/\U0001f30d", None, b"1"), ("e", "", b"1")]


def test_delay(sluice, box):
    sluice.run("push", "--topic", "t", "--delay", "1h", "1", db=box)
    if is_postgres(box):
        late = "available_at - now() BETWEEN interval '59 minutes' AND interval '61 minutes'"
    else:
        late = "(julianday(available_at) - julianday('now')) * 1440 BETWEEN 59 AND 61"
    assert query(box, f"SELECT count(*) FROM outbox WHERE {late}") == [(1,)]


def test_idempotency_key(sluice, box):
    for n in (1, 0, 0):
        done = sluice.run("push", "--topic", "t", "--idempotency-key", "order:1/paid", str(n), db=box)
        assert done.stdout == (f"pushed {n} message\n" if n else "pushed 0 messages, 1 duplicate left out\n")
    assert query(box, "SELECT payload FROM outbox") == [(b"1",)]


def test_an_empty_idempotency_key_is_refused(sluice, box):
    """As in a line: every message that carried it but the first would vanish."""
    done = sluice.run("push", "--topic", "t", "--idempotency-key", "", "1", db=box, check=False)
    assert done.returncode != 0 and topics(box) == []


def test_too_long(sluice, box):
    done = sluice.run("push", "--topic", "t", "--key", "é" * 257, "x", db=box, check=1)
    assert "514 bytes" in done.stderr and "512" in done.stderr
    done = sluice.run("push", "--topic", "t", "--idempotency-key", "x" * 513, "x", db=box, check=1)
    assert "constraint" in done.stderr
    assert topics(box) == []


@pytest.mark.parametrize("flags", [["--topic", b"t\xff"], ["--key", b"\xff"], ["--type", b"\xff"], ["--headers", b"a=\xff"],
                                   ["--idempotency-key", b"\xff"], ["--content-type", b"\xff"]], ids=lambda f: f[0])
def test_arguments_that_are_not_utf8(sluice, box, flags):
    flags = [os.fsdecode(f) if isinstance(f, bytes) else f for f in flags]
    topic = [] if flags[0] == "--topic" else ["--topic", "t"]
    done = sluice.run("push", *topic, *flags, "x", db=box, check=1)
    assert "UTF" in done.stderr or "encoding" in done.stderr
    assert topics(box) == []


def test_a_large_argument_and_a_large_input(sluice, box):
    sluice.run("push", "--topic", "a", "x" * 100_000, db=box)
    sluice.run("push", "--topic", "b", "-", db=box, input=b"\x00" * 20_000_000)
    length = "octet_length" if is_postgres(box) else "length"
    assert query(box, f"SELECT {length}(payload) FROM outbox ORDER BY id") == [(100_000,), (20_000_000,)]


# -- Lines ---------------------------------------------------------------------------------------

def test_lines_from_a_file_and_from_standard_input(sluice, box, tmp_path):
    text = lines({**GOOD, "topic": "a"}, {**GOOD, "topic": "b"})
    (tmp_path / "x.jsonl").write_text(text)
    assert sluice.run("push", "--lines", tmp_path / "x.jsonl", db=box).stdout == "pushed 2 messages\n"
    assert sluice.run("push", "--lines", "-", db=box, input=text.rstrip("\n")).stdout == "pushed 2 messages\n"
    assert sluice.run("push", "--lines", "-", db=box, input=text.replace("\n", "\r\n")).stdout == "pushed 2 messages\n"
    assert sluice.run("push", "--lines", "-", "--quiet", db=box, input=text).stdout == ""
    assert topics(box) == ["a", "b"] * 4


def test_no_lines_at_all(sluice, lite):
    assert sluice.run("push", "--lines", "-", db=lite, input="").stdout == "pushed 0 messages\n"


@pytest.mark.parametrize("line, words", [
    ("nonsense", ["not a line of JSON at byte"]),
    ("{", ["not a line of JSON"]),
    ('{"topic":"t","payload":1', ["not a line of JSON"]),
    ('{"topic":"t","payload":1}}', ["something follows the object"]),
    ('{"topic":"t","payload":1} {"topic":"t","payload":1}', ["something follows the object"]),
    ('{"topic":"t","payload":01}', ["not a line of JSON"]),
    ('{"topic":"t","payload":NaN}', ["not a line of JSON"]),
    ("{'topic':'t','payload':1}", ["not a line of JSON"]),
    ('{"topic":"t","payload":1,}', ["not a line of JSON"]),
    ('{"topic":"t","payload":"\t"}', ["not a line of JSON"]),
    ("", ["the line is empty"]),
    ("  ", ["the line is empty"]),
    ("[]", ["the line is an array, not an object"]),
    ("42", ["the line is a number, not an object"]),
    ("null", ["the line is null, not an object"]),
    ('\ufeff{"topic":"t","payload":1}', ["byte order mark"]),
    ({"payload": 1}, ['member "topic" is missing']),
    ({"topic": "t"}, ['member "payload" is missing', "payload_base64"]),
    ({"topic": "", "payload": 1}, ['"topic" is empty']),
    ({"topic": 7, "payload": 1}, ['member "topic" is a number, not a string']),
    ({"topic": None, "payload": 1}, ['"topic"']),
    ({"topic": "t", "payload": 1, "payload_base64": "MQ=="}, ["exclude each other"]),
    ({"topic": "t", "payload_base64": "MQ"}, ["is not base64", "padded"]),
    ({"topic": "t", "payload_base64": "M?=="}, ["is not base64"]),
    ({"topic": "t", "payload_base64": 1}, ['member "payload_base64" is a number']),
    ({"topic": "t", "payload_base64": None}, ['member "payload_base64" is null']),
    ({"topc": "t", "payload": 1}, ['unknown member "topc"', 'did you mean "topic"?']),
    ({**GOOD, "entity_key": "k"}, ['unknown member "entity_key"', 'did you mean "key"?']),
    ({**GOOD, "event_type": "k"}, ['unknown member "event_type"', 'did you mean "type"?']),
    ({**GOOD, "Key": "k"}, ['unknown member "Key"', 'did you mean "key"?']),
    ({**GOOD, "nonsense": 1}, ['unknown member "nonsense"', "there are topic, key, payload"]),
    ('{"topic":"t","topic":"u","payload":1}', ['member "topic" is there twice']),
    ({**GOOD, "key": 7}, ['member "key" is a number, not a string']),
    ({**GOOD, "key": "x" * 513}, ['member "key" has 513 bytes, more than 512']),
    ({**GOOD, "key": "a\0b"}, ["NUL character"]),
    ({**GOOD, "type": {}}, ['member "type" is an object, not a string']),
    ({**GOOD, "headers": []}, ['member "headers" is an array']),
    ({**GOOD, "headers": {"a": 1}}, ['header "a" is a number, not a string']),
    ({**GOOD, "headers": {"a": "\0"}}, ["NUL character"]),
    ({**GOOD, "idempotency_key": ""}, ['member "idempotency_key" is empty']),
    ({**GOOD, "available_at": "tomorrow"}, ["no RFC 3339 time", "2027-01-31T08:30:00Z"]),
    ({**GOOD, "available_at": "2027-02-30T00:00:00Z"}, ["no RFC 3339 time"]),
    ({**GOOD, "available_at": "2027-01-31T08:30:00"}, ["no RFC 3339 time"]),
    ({**GOOD, "available_at": True}, ['member "available_at" is a boolean']),
    ({**GOOD, "available_at": 1800000000000}, ["beyond the year 9999", "not milliseconds"]),
    ('{"topic":"\\ud800","payload":1}', ["half a surrogate pair"]),
    pytest.param("[" * 100_000, ["not a line of JSON"], id="deep and open"),
    pytest.param('{"topic":"t","payload":' + "[" * 100_000 + "]" * 100_000 + "}", ["not a line of JSON"], id="too deep"),
])
def test_a_wrong_line_is_named(sluice, lite, line, words):
    """It is the third; nothing of its chunk is pushed."""
    text = lines(GOOD, GOOD, line, GOOD)
    done = sluice.run("push", "--lines", "-", db=lite, input=text, check=1)
    assert done.stdout == ""
    assert done.stderr.startswith("sluice push: standard input, line 3: ")
    for word in words:
        assert word in done.stderr
    assert done.stderr.rstrip().endswith("nothing was pushed")
    assert len(done.stderr) < 1000, "a wrong line is not repeated in full"
    assert topics(lite) == []


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_lines_that_are_not_utf8(sluice, lite, bad):
    text = lines(GOOD).encode() + b'{"topic":"' + bad + b'","payload":1}\n'
    done = sluice.run("push", "--lines", "-", db=lite, input=text, check=1)
    assert "line 2: not UTF-8 at byte 11 (0x" in done.stderr
    assert topics(lite) == []


def test_a_nul_in_a_line(sluice, lite):
    done = sluice.run("push", "--lines", "-", db=lite, input=b'{"topic":"t",\0"payload":1}\n', check=1)
    assert "line 1: not a line of JSON at byte 14" in done.stderr


@pytest.mark.threads
def test_what_was_pushed_before_a_wrong_line_is_told(sluice, box):
    """Chunks of a thousand: after mending, one goes on where it says."""
    text = lines(*[{**GOOD, "topic": str(i)} for i in range(1, 2501)]).splitlines()
    text[2199] = "{}"
    done = sluice.run("push", "--lines", "-", db=box, input="\n".join(text), check=1)
    assert "line 2200: " in done.stderr
    assert "lines 1 to 2000 are pushed; go on with line 2001" in done.stderr
    assert topics(box) == [str(i) for i in range(1, 2001)]
    text[2199] = json.dumps({**GOOD, "topic": "2200"})
    sluice.run("push", "--lines", "-", db=box, input="\n".join(text[2000:]))
    assert topics(box) == [str(i) for i in range(1, 2501)]


def test_a_chunk_that_the_database_refuses_is_not_pushed_in_part(sluice, box):
    text = lines(GOOD, {**GOOD, "idempotency_key": "x" * 513}, GOOD)
    done = sluice.run("push", "--lines", "-", db=box, input=text, check=1)
    assert "standard input, lines 1 to 3: " in done.stderr and "nothing was pushed" in done.stderr
    assert topics(box) == []


def test_an_error_never_shows_a_payload(sluice, box):
    """PostgreSQL's detail of a failed constraint holds the row, bytes in hexadecimal."""
    text = lines({"topic": "t", "payload": "4111-1111", "idempotency_key": "x" * 513})
    done = sluice.run("push", "--lines", "-", db=box, input=text, check=1)
    for form in ("4111", b"4111".hex(), base64.b64encode(b'"4111-').decode(), "xxx"):
        assert form not in done.stderr


def test_idempotency_keys_in_lines(sluice, box):
    text = lines(*[{**GOOD, "topic": str(i), "idempotency_key": str(i % 3)} for i in range(9)], GOOD)
    assert sluice.run("push", "--lines", "-", db=box, input=text).stdout == "pushed 4 messages, 6 duplicates left out\n"
    assert topics(box) == ["0", "1", "2", "t"]
    assert sluice.run("push", "--lines", "-", db=box, input=text).stdout == "pushed 1 message, 9 duplicates left out\n"


@pytest.mark.parametrize("value, stored", [
    ("2027-01-31T08:30:00Z", "2027-01-31 08:30:00.000"), ("2027-01-31T08:30:00.5+01:00", "2027-01-31 07:30:00.500"),
    ("2027-01-31t08:30:00z", "2027-01-31 08:30:00.000"), (1801384200, "2027-01-31 08:30:00.000"),
    (1801384200.25, "2027-01-31 08:30:00.250"), (0, "1970-01-01 00:00:00.000"), (-1, "1970-01-01 00:00:00.000"),
    ("9999-12-31T23:59:59Z", "9999-12-31 23:59:59.000")])
def test_available_at(sluice, box, value, stored):
    sluice.run("push", "--lines", "-", db=box, input=lines({**GOOD, "available_at": value}))
    column = "to_char(available_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')" if is_postgres(box) else "available_at"
    assert query(box, f"SELECT {column} FROM outbox") == [(stored,)]


def test_null_is_as_good_as_absent(sluice, box):
    absent = {name: None for name in ("key", "type", "headers", "content_type", "idempotency_key", "available_at")}
    sluice.run("push", "--lines", "-", db=box, input=lines({**GOOD, **absent}, {**GOOD, "headers": {}}))
    rows = query(box, "SELECT entity_key, event_type, headers, content_type, idempotency_key FROM outbox")
    assert rows == [(None, "", None, "application/json", None)] * 2


@pytest.mark.parametrize("path, words", [
    ("/none/at/all", "No such file or directory"), ("/", "directory"), ("", "cannot read")])
def test_unreadable_files(sluice, lite, path, words):
    done = sluice.run("push", "--lines", path, db=lite, check=False)
    assert done.returncode in (1, 2) and words in done.stderr
    assert topics(lite) == []


def test_a_very_long_line(sluice, box):
    sluice.run("push", "--lines", "-", db=box, input=lines(GOOD, {"topic": "big", "payload": "x" * 30_000_000}, GOOD))
    assert topics(box) == ["t", "big", "t"]


@pytest.mark.threads
def test_several_pushers_at_once(sluice, box):
    text = lines(*[GOOD] * 500)
    with open(f"{sluice.cwd}/x.jsonl", "w") as f:
        f.write(text)
    several = [sluice.start("push", "--lines", "x.jsonl", db=box) for _ in range(4)]
    for p in several:
        p.wait(status=0)
        assert p.stdout() == "pushed 500 messages\n"
    assert query(box, "SELECT count(*), count(DISTINCT id) FROM outbox") == [(2000, 2000)]
