"""Drives PgQ: one consumer, which gets batches of events in order. It asks for what it needs of an event, and moves
its position once for a batch; nothing is written for a single event."""
import os
import sys

import psycopg2

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from driver import Record, arguments, now  # noqa: E402

PAYLOAD = """'{"n":' || g || ',"pad":"' || repeat('x', %(pad)s - length(g::text)) || '"}'"""
ADD = f"""SELECT count(pgq.insert_event('orders', 'order', {PAYLOAD}, 'order:' || g %% %(keys)s, null, null, null))
            FROM generate_series(%(first)s::int, %(last)s) g"""


def enqueue(s):
    """A tick after each so many events, as pgqd would make them: by pgq.ticker(), not by force."""
    conn = psycopg2.connect(s["url"])
    conn.autocommit = True
    db = conn.cursor()
    db.execute("CREATE EXTENSION pgq")
    db.execute("SELECT pgq.create_queue('orders')")
    db.execute("SELECT pgq.set_queue_config('orders', 'ticker_max_count', %s)", (str(s["batch"]),))
    db.execute("SELECT pgq.register_consumer('orders', 'bench')")
    for first in range(1, s["rows"] + 1, s["batch"]):
        db.execute(ADD, {**s, "first": first, "last": min(s["rows"], first + s["batch"] - 1)})
        db.execute("SELECT pgq.ticker('orders')")
    db.execute("SELECT pgq.force_tick('orders')")  # for the last few
    db.execute("SELECT pgq.ticker('orders')")


def drain(s):
    conn = psycopg2.connect(s["url"])
    db = conn.cursor()
    record = Record()
    started = now()
    while True:
        db.execute("SELECT pgq.next_batch('orders', 'bench')")
        (batch,) = db.fetchone()
        if batch is None:
            break
        db.execute("SELECT ev_data, ev_extra1 FROM pgq.get_batch_events(%s)", (batch,))
        for data, _key in db.fetchall():
            start = now()
            record.note(int(data[5:data.index(",")]), start, now())
        db.execute("SELECT pgq.finish_batch(%s)", (batch,))
        conn.commit()
    record.write(s["record"], started, now())


if __name__ == "__main__":
    verb, settings = arguments()
    {"enqueue": enqueue, "drain": drain}[verb](settings)
