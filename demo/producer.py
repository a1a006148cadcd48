"""The shop: a process that commits orders, each with its outbox message in the same transaction.

    producer.py DATABASE ORDERS_PER_SECOND CUSTOMERS

It knows nothing of Sluice but the INSERT into its table. It goes on until TERM.
"""
import json
import random
import signal
import sqlite3
import sys
import time

OPEN = "the shop is open"  # printed once TERM will be heeded
BURST_SECONDS = 0.04  # orders come in bursts, so that all workers have something to do at once

CREATE_ORDERS = """CREATE TABLE orders (
    customer TEXT NOT NULL,
    seq      INTEGER NOT NULL, -- the customer's first, second, third order
    amount   REAL NOT NULL,
    PRIMARY KEY (customer, seq))"""
INSERT_ORDER = "INSERT INTO orders (customer, seq, amount) VALUES (?, ?, ?)"
INSERT_MESSAGE = "INSERT INTO outbox (topic, entity_key, payload) VALUES ('orders', ?, ?)"

# The two statements above, for people.
SHOWN = """\
BEGIN;
  INSERT INTO orders (customer, seq, amount) VALUES ('customer:042', 7, 19.9);
  INSERT INTO outbox (topic, entity_key, payload)
       VALUES ('orders', 'customer:042', '{"seq": 7, "amount": 19.9, ...}');
COMMIT;"""


class Shop:
    def __init__(self, path, customers):
        # isolation_level None: BEGIN and COMMIT are ours, not Python's.
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.last = {f"customer:{n:03d}": 0 for n in range(1, customers + 1)}
        self.closing = False

    def close(self, *_):
        self.closing = True

    def order(self, customer):
        seq = self.last[customer] = self.last[customer] + 1
        amount = random.randrange(100, 10000) / 100
        # The time is taken before the commit, so a latency counted from it is never too short.
        payload = json.dumps({"seq": seq, "amount": amount, "at": time.time()})
        self.db.execute(INSERT_ORDER, (customer, seq, amount))
        self.db.execute(INSERT_MESSAGE, (customer, payload.encode()))

    def burst(self, count):
        """One transaction for all orders of a burst: a slow disk may not keep up with one each.
        IMMEDIATE, since a transaction that begins as a reader can be refused when it writes."""
        self.db.execute("BEGIN IMMEDIATE")
        for customer in random.sample(sorted(self.last), min(count, len(self.last))):
            self.order(customer)
        self.db.execute("COMMIT")

    def run(self, rate):
        next_at = time.monotonic()
        while not self.closing:
            self.burst(round(rate * BURST_SECONDS))
            # After a stall it goes on at its pace; a flood of what was missed helps nobody.
            next_at = max(next_at + BURST_SECONDS, time.monotonic())
            time.sleep(max(0, next_at - time.monotonic()))
        self.db.close()


def main():
    path, rate, customers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    shop = Shop(path, customers)
    signal.signal(signal.SIGTERM, shop.close)
    print(OPEN, flush=True)
    shop.run(rate)


if __name__ == "__main__":
    main()
