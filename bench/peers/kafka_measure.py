"""One program at a time: how fast it empties a full table into Kafka, and how soon a message is there at a steady rate."""
import json
import os
import subprocess
import sys
import time

from parts.kafka import PARTITIONS, ticks_of
from parts.program import Wrong, environment, processor_seconds
from parts.tables import KEYS, PAD, PostgresTable

from kafka_figures import arrivals, latencies, percentiles
from kafka_programs import SLOT

PER_COMMIT_FILL = 1000  # one huge transaction would be a trial of logical decoding of its own
LOOK_SECONDS = 0.2
LIMIT_SECONDS = 900
COLUMNS = "id, topic, entity_key, payload"


class Table(PostgresTable):
    """Sluice's, with what Debezium needs: the server's wal_level, a publication and, while it is its turn, a slot."""

    def __init__(self, options):
        super().__init__(options, {"wal_level": "logical"})
        self.server.sql(f"CREATE PUBLICATION peers FOR TABLE outbox ({COLUMNS}) WITH (publish = 'insert')")

    def prepare(self, program):
        """An empty table, and the slot, from which what comes now is read."""
        self.empty()
        if program.slot:
            self.server.sql(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")

    def add_in_commits(self, topic, rows):
        self.server.sql(f"""
            DO $$ BEGIN FOR low IN 1..{rows} BY {PER_COMMIT_FILL} LOOP
                INSERT INTO outbox (topic, entity_key, payload)
                SELECT '{topic}', 'order:' || g % {KEYS},
                       convert_to('{{"n":' || g || ',"pad":"' || repeat('x', {PAD} - length(g::text)) || '"}}', 'UTF8')
                  FROM generate_series(low, least(low + {PER_COMMIT_FILL - 1}, {rows})) g;
                COMMIT;
            END LOOP; END $$""")
        self.server.sql("VACUUM ANALYZE outbox")
        self.server.sql("CHECKPOINT")

    def drop_slot(self):
        """When its reader has gone."""
        slot = f"FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
        self.server.sql(f"SELECT pg_terminate_backend(active_pid) {slot} AND active")
        end = time.monotonic() + 30
        while self.server.sql(f"SELECT 1 {slot} AND active"):
            if time.monotonic() > end:
                raise Wrong("the replication slot stays in use")
            time.sleep(0.05)
        self.server.sql(f"SELECT pg_drop_replication_slot(slot_name) {slot}")


class Topic:
    """A new one, whose records have the broker's time."""

    def __init__(self, broker):
        from confluent_kafka import Consumer, TopicPartition
        self.broker = broker
        self.name = broker.new_topic(partitions=PARTITIONS, configs={"message.timestamp.type": "LogAppendTime"})
        self._consumer = Consumer({**broker.properties(), "group.id": "peers", "log_level": 0})
        self._parts = [TopicPartition(self.name, i) for i in range(PARTITIONS)]

    def records(self):
        return sum(self._consumer.get_watermark_offsets(p, timeout=30)[1] for p in self._parts)

    def wait_records(self, rows, program):
        end = time.monotonic() + LIMIT_SECONDS
        while self.records() < rows:
            program.alive()
            if time.monotonic() > end:
                raise Wrong(f"{program.name}: {self.records()} of {rows} records within {LIMIT_SECONDS} s\n"
                            f"{program.log_text()[-5000:]}")
            time.sleep(LOOK_SECONDS)

    def arrivals(self, rows):
        return arrivals(self.broker.read(self.name), rows)

    def close(self):
        self._consumer.close()


def processor(program, table, broker):
    """Seconds so far."""
    return {"program": ticks_of(program.pid), "database": processor_seconds(table.server.pid), "broker": ticks_of(broker.pid())}


def per_million(before, after, rows):
    used = {name: (after[name] - before[name]) * 1e6 / rows for name in before}
    return {**used, "all": sum(used.values())}


class _Turn:
    """A program's turn on an empty table: with a topic, and all of it away afterwards."""

    def __init__(self, program, table, broker):
        self.program, self.table, self.broker = program, table, broker

    def __enter__(self):
        self.table.prepare(self.program)
        self.topic = Topic(self.broker)
        return self.topic

    def __exit__(self, *_):
        self.program.close()
        self.topic.close()
        if self.program.slot:
            self.table.drop_slot()


def finish(program, table, rows):
    """Ends it, and looks whether it has done all: Sluice leaves nothing in the table, Debezium leaves everything."""
    program.finish(rows)
    wanted = (rows if program.slot else 0, 0)
    if table.left() != wanted:
        raise Wrong(f"{program.name} left {table.left()} messages and dead letters, not {wanted}")


def drain(options, program, table, broker):
    """From the moment when it begins to read until the broker has the last record."""
    rows = options.rows
    with _Turn(program, table, broker) as topic:
        table.add_in_commits(topic.name, rows)
        program.start(table, broker)
        reading = program.wait_reading()
        before = processor(program, table, broker)
        topic.wait_records(rows, program)
        after, peak = processor(program, table, broker), program.peak_mb()
        finish(program, table, rows)
        got = topic.arrivals(rows)
        last = max(got.first.values()) / 1000
        seconds = max(last - reading, 0.001)
        return {"seconds": seconds, "rate": rows / seconds, "whole_seconds": last - program.began,
                "whole_rate": rows / (last - program.began), "memory_mb": peak, "duplicates": got.duplicates,
                "start_processor_seconds": before["program"], "processor": per_million(before, after, rows)}


def produce(options, program, table, broker, topic):
    """Runs the producer beside the program; returns its commits, when counting began, and what was used since."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kafka_produce.py")
    argv = [sys.executable, here, table.url, topic, options.rate, options.warm + options.seconds, options.per_commit, KEYS, PAD]
    child = subprocess.Popen(list(map(str, argv)), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        time.sleep(options.warm)
        counted, before = time.time(), processor(program, table, broker)
        text = child.stdout.readline()
        after = processor(program, table, broker)
        child.stdin.close()
        if child.wait(60) or not text:
            raise Wrong(f"the producer ended with status {child.returncode}")
    finally:
        child.kill()
        child.wait()
    return json.loads(text), counted, before, after


def latency(options, program, table, broker):
    """A producer commits at a steady rate while the program runs. The first seconds are not counted."""
    with _Turn(program, table, broker) as topic:
        program.start(table, broker)
        program.wait_reading()
        commits, counted, before, after = produce(options, program, table, broker, topic.name)
        rows = commits[-1][1]
        topic.wait_records(rows, program)
        peak = program.peak_mb()
        finish(program, table, rows)
        got = topic.arrivals(rows)
    inside = [c for c in commits if c[2] >= counted]
    messages = sum(high - low + 1 for low, high, _, _ in inside)
    return {**percentiles(latencies(got.first, inside)), "messages": messages, "memory_mb": peak,
            "offered": messages / (inside[-1][3] - inside[0][2]), "duplicates": got.duplicates,
            "processor": per_million(before, after, messages)}
