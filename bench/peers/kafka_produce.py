#!/usr/bin/python3
"""A producer at a steady rate, a process of its own: inserts messages into the outbox and notes when each commit was
answered. Prints a line when it begins, and at the end one JSON list of (first number, last number, began, answered); then it
keeps its connection until standard input ends, so that who counts processor time finds the server's process still there.

    kafka_produce.py URL TOPIC RATE SECONDS PER_COMMIT KEYS PAD
"""
import json
import sys
import time

import psycopg2

INSERT = """
    PREPARE push (bigint, bigint) AS
    INSERT INTO outbox (topic, entity_key, payload)
    SELECT %s, 'order:' || g %% %s, convert_to('{"n":' || g || ',"pad":"' || repeat('x', %s - length(g::text)) || '"}', 'UTF8')
      FROM generate_series($1, $2) g"""


def produce(cursor, commits, rate, per_commit):
    """Each commit has its time; one that comes late is made at once, so that a slow database gets no rest."""
    noted, start = [], time.time()
    for i in range(commits):
        time.sleep(max(start + i * per_commit / rate - time.time(), 0))
        low, high, began = i * per_commit + 1, (i + 1) * per_commit, time.time()
        cursor.execute("EXECUTE push (%s, %s)", (low, high))
        noted.append((low, high, began, time.time()))
    return noted


def main():
    url, topic = sys.argv[1:3]
    rate, seconds = map(float, sys.argv[3:5])
    per_commit, keys, pad = map(int, sys.argv[5:])
    conn = psycopg2.connect(url)
    conn.autocommit = True
    with conn.cursor() as cursor:
        cursor.execute(INSERT, (topic, keys, pad))
        print("begins", flush=True)
        print(json.dumps(produce(cursor, int(rate * seconds / per_commit), rate, per_commit)), flush=True)
        sys.stdin.read()
    conn.close()


if __name__ == "__main__":
    main()
