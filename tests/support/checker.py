"""Judges a history: what was committed to the outbox, against what the sink recorded.

    messages = commit(url, 1000)                 # or, before anything runs: committed(url)
    ...
    summary = check(messages, read_sink("out.jsonl"), in_flight=leased_at_the_kills)
    print(summary)

It reads the sink's own file, never a log. What must hold:

    loss         every committed message was delivered, or is a dead letter
    invention    nothing else was, and what arrived has the topic, the key and the very payload
                 bytes (by sha256) that were committed
    duplicates   only of messages that were in flight when their owner was hit, at most once more
                 for each time, and no more than allowed in all; so none without a fault
    epochs       of one message never fall in the order of the file; with `fenced`, each delivery
                 is of a later epoch
    least        a history with too little in it proves nothing, and fails

Order, exclusion and the rest of what the ordered strategies promise is judged by history.py.
"""
import base64
import collections
import hashlib
import json

from harness import is_postgres, query

Message = collections.namedtuple("Message", "topic key digests")
Delivery = collections.namedtuple("Delivery", "line id topic key epoch attempt worker digests")

SHOWN = 5  # violations of one kind that are written out


class BadHistory(AssertionError):
    """What is wrong with it, one line for each violation."""


class Summary(collections.namedtuple("Summary", "committed delivered lines duplicates most torn dead workers")):
    """committed: messages; delivered: messages at least once; lines: deliveries; duplicates: lines
    beyond the first of each message; most: deliveries of one message; torn: lines that a killed
    process left; dead: dead letters; workers: who delivered."""

    def __str__(self):
        return (f"{self.committed} messages, {self.delivered} delivered in {self.lines} lines by"
                f" {len(self.workers)} workers, {self.duplicates} duplicates (at most {self.most} of one),"
                f" {self.dead} dead, {self.torn} torn lines")


# -- What was committed --------------------------------------------------------------------------

def digests_of(payload):
    """sha256 of the bytes; and of JSON that a sink has put on one line, where a line break between
    tokens became a blank."""
    payload = payload.encode() if isinstance(payload, str) else bytes(payload)
    one_line = payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return frozenset(hashlib.sha256(p).digest() for p in (payload, one_line))


def message(topic, key, payload):
    return Message(topic, key, digests_of(payload))


def committed(url, table="outbox"):
    """What is in the table now, by id."""
    rows = query(url, f"SELECT id, topic, entity_key, payload FROM {table}")
    return {row[0]: message(*row[1:]) for row in rows}


def commit(url, n, table="outbox"):
    """Commits n messages by plain SQL, in one statement; returns them by id."""
    if is_postgres(url):
        source = "generate_series(1, ?) AS s (i)"
        payload = """convert_to('{"n":' || i || '}', 'UTF8')"""
    else:
        source = "(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ?) SELECT i FROM s)"
        payload = """CAST('{"n":' || i || '}' AS BLOB)"""
    rows = query(url, f"INSERT INTO {table} (topic, entity_key, payload)"
                      f" SELECT 'orders', 'order:' || (i % 97), {payload} FROM {source}"
                      " RETURNING id, topic, entity_key, payload", n)
    return {row[0]: message(*row[1:]) for row in rows}


def dead_letters(url, table="outbox"):
    return {row[0] for row in query(url, f"SELECT id FROM {table}_dead")}


# -- What the sink recorded ----------------------------------------------------------------------

DECODER = json.JSONDecoder()


def _payload_digests(text, line):
    """Of the payload as it stands in the line: a JSON decoder would spell numbers anew. A string
    may be JSON text, or other text as a string."""
    if "payload_base64" in line:
        return digests_of(base64.b64decode(line["payload_base64"], validate=True))
    start = text.index(',"payload":') + len(',"payload":')  # inside a string it would be escaped
    value, end = DECODER.raw_decode(text, start)
    found = digests_of(text[start:end])
    return found | digests_of(value) if isinstance(value, str) else found


def delivery(number, text):
    line = json.loads(text)
    return Delivery(number, line["id"], line["topic"], line["key"], line["epoch"], line["attempt"], line["worker"],
                    _payload_digests(text, line))


class Record(list):
    """Deliveries in the order of the file; `torn` are the numbers of lines that are none."""

    def __init__(self, deliveries=(), torn=()):
        super().__init__(deliveries)
        self.torn = list(torn)


def read_sink(*paths):
    """The record of a file: sink, or of one that was rotated: the oldest file first."""
    record = Record()
    number = 0
    for path in paths:
        with open(path, encoding="utf-8", newline="\n") as f:
            for text in f:
                number += 1
                try:
                    record.append(delivery(number, text.rstrip("\n")))
                except (json.JSONDecodeError, KeyError, TypeError):
                    record.torn.append(number)
    return record


# -- The verdict ---------------------------------------------------------------------------------

def some(kind, violations):
    violations = list(violations)
    more = [f"... and {len(violations) - SHOWN} more of this kind"] if len(violations) > SHOWN else []
    return [f"{kind}: {v}" for v in violations[:SHOWN] + more]


def _invented(messages, record, dead):
    for d in record:
        m = messages.get(d.id)
        if m is None:
            yield f"line {d.line} delivers message {d.id}, which was never committed"
        elif (d.topic, d.key) != (m.topic, m.key):
            yield f"line {d.line}: message {d.id} is {m.topic}/{m.key}, not {d.topic}/{d.key}"
        elif not d.digests & m.digests:
            yield f"line {d.line}: message {d.id} has another payload"
    for id in dead - messages.keys():
        yield f"dead letter {id} was never committed"


def _repeated(record, in_flight):
    for id, times in collections.Counter(d.id for d in record).items():
        if times > 1 + in_flight[id]:
            yield f"message {id} was delivered {times} times and was {in_flight[id]} times in flight at a fault"


def _fallen(record, fenced, excused):
    last = {}
    for d in record:
        if d.line in excused:
            continue
        before = last.get(d.id)
        if before and (d.epoch < before.epoch or (fenced and d.epoch == before.epoch)):
            yield f"message {d.id} has epoch {before.epoch} in line {before.line} and {d.epoch} in line {d.line}"
        last[d.id] = d


def complaints(messages, record, dead=(), in_flight=(), duplicates_max=None, torn_max=0, fenced=False, least=1,
               excused=()):
    """A Summary, and what is wrong.

    in_flight       ids, one entry for each time that a message's owner was hit while it held it
    duplicates_max  in all; by default as many as were in flight
    torn_max        lines that are no whole JSON object
    fenced          the claim raises the epoch each time (hold: lease)
    least           so many different messages must have arrived
    excused         lines whose epochs are judged elsewhere
    """
    dead = set(dead)
    in_flight = collections.Counter(in_flight)
    most = sum(in_flight.values()) if duplicates_max is None else duplicates_max
    counts = collections.Counter(d.id for d in record)
    summary = Summary(len(messages), len(counts), len(record), len(record) - len(counts),
                      max(counts.values(), default=0), len(record.torn), len(dead),
                      sorted({d.worker for d in record}))
    wrong = some("loss", (f"message {id} never arrived" for id in sorted(messages.keys() - counts.keys() - dead)))
    wrong += some("invention", _invented(messages, record, dead))
    wrong += some("duplicates", _repeated(record, in_flight))
    wrong += some("epochs", _fallen(record, fenced, set(excused)))
    if summary.duplicates > most:
        wrong.append(f"duplicates: {summary.duplicates} in all, at most {most} are allowed")
    if summary.torn > torn_max:
        wrong.append(f"torn: lines {record.torn[:SHOWN]} are no messages, at most {torn_max} may be")
    if summary.delivered < max(least, 1):
        wrong.append(f"least: {summary.delivered} messages arrived, which is too few to prove anything")
    return summary, wrong


def check(*args, **kw):
    """Raises BadHistory, or returns a Summary; the arguments are those of `complaints`."""
    summary, wrong = complaints(*args, **kw)
    if wrong:
        raise BadHistory("\n".join([str(summary), *wrong]))
    return summary
