#!/usr/bin/python3
"""PostgreSQL to three Kafka brokers, at length: nodes are killed and paused beyond their lease, and brokers are killed, while
messages are in flight; `make torture-kafka` is this. First without faults.

    tests/torture/kafka.py                                        200,000 messages, 50 kills, 20 pauses, 10 brokers killed
    tests/torture/kafka.py --messages 20000 --kills 8 --pauses 4 --brokers 2
    tests/torture/kafka.py --fence kafka                          nothing that a former owner sends is in the log
    tests/torture/kafka.py --delivery exactly-once                and nothing is there twice
    tests/torture/kafka.py --layout rotated                       what was delivered stays until its segment is emptied
    tests/torture/kafka.py --only memory                          a million messages, and how much memory that takes

The status is 1 if anything is violated, or if too few of the faults hit work in flight. See tests/support/kafkarun.py for
what is done, and what must hold.
"""
import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from harness import Sluice, query  # noqa: E402
from kafka import Kafka, Unreachable  # noqa: E402
from kafkarun import Run  # noqa: E402
from servers import Postgres  # noqa: E402
from torture import Screen, build  # noqa: E402

MEMORY_MB = 100
PARTS = ("clean", "faults", "memory")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strategy", default="lanes", choices=["lanes", "guard", "advisory"])
    p.add_argument("--messages", type=int, default=200000)
    p.add_argument("--keys", type=int, default=5000)
    p.add_argument("--partitions", type=int, default=12)
    p.add_argument("--kills", type=int, default=50)
    p.add_argument("--pauses", type=int, default=20, help="SIGSTOP for longer than the lease")
    p.add_argument("--brokers", type=int, default=10, help="SIGKILL of a broker")
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--lease", type=float, default=5.0, help="in seconds")
    p.add_argument("--layout", default="sluice", choices=["sluice", "rotated"], help="of the table")
    p.add_argument("--workers", type=int, help="of each node: 2, or 1 with layout rotated, where few have much")
    p.add_argument("--fence", help="passed on to the nodes: kafka")
    p.add_argument("--delivery", help="passed on to the nodes: exactly-once")
    p.add_argument("--only", choices=PARTS, help="one part of it; memory is no part of the others")
    p.add_argument("--memory-messages", type=int, default=1000000)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def flags_of(o):
    return [word for name in ("fence", "delivery") if getattr(o, name) for word in (f"--{name}", getattr(o, name))]


def tell(title, figures, wrong, started):
    print(title)
    for name, n in {**figures, "seconds": round(time.monotonic() - started)}.items():
        print(f"{n:>9}  {name}")
    for text in wrong:
        print(text)
    print("violated, see above" if wrong else "nothing was violated", flush=True)


def attack(o, sluice, pg, kafka, faults):
    started = time.monotonic()
    run = Run(sluice, pg, kafka, o.messages, o.keys, o.kills * faults, o.pauses * faults, o.brokers * faults, o.nodes,
              workers=o.workers or (1 if o.layout == "rotated" else 2), layout=o.layout, batch=o.batch, lease=o.lease if faults else 30.0, partitions=o.partitions, strategy=o.strategy, flags=flags_of(o), seed=o.seed,
              say=lambda text: print(text, flush=True))
    least = {"messages": o.messages, "partitions": o.partitions}
    if faults:
        least.update({"kills": o.kills, "pauses": o.pauses, "broker kills": o.brokers, "in flight at a kill": 10})
    try:
        figures, wrong = run.play(least)
    finally:
        run.close()
    if not faults and figures["duplicates"]:
        wrong.append(f"duplicates: {figures['duplicates']} without a fault")
    tell("with faults" if faults else "without faults", figures, wrong, started)
    return not wrong


def status_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return {name: int(kb) for name, kb in re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB", f.read(), re.M)}


def memory(o, sluice, pg, kafka):
    """One node with as many workers as by default, and so many messages of 200 bytes that wait."""
    started = time.monotonic()
    url, topic, seen = pg.new_database(), kafka.new_topic(partitions=o.partitions), []
    sluice.run("init", db=url)
    query(url, "INSERT INTO outbox (topic, entity_key, payload) SELECT ?, 'k' || (i % ?), convert_to(lpad(i::text, 200, 'x'),"
               " 'UTF8') FROM generate_series(1, ?) AS s (i)", topic, o.keys, o.memory_messages)
    inserted = time.monotonic()
    node = sluice.start("run", "--drain", "--sink", f"kafka://{kafka.bootstrap()}", *flags_of(o), db=url)
    while node.running:
        try:
            seen.append(status_kb(node.pid))
        except OSError:
            break
        time.sleep(0.05)
    took = time.monotonic() - inserted
    node.wait(60, status=0)
    records = count_records(kafka, topic, o.partitions)
    seen = [s for s in seen if "VmHWM" in s]
    figures = {"messages": o.memory_messages, "records": records, "samples": len(seen),
               "MB at most (VmHWM)": round(max(s["VmHWM"] for s in seen) / 1000, 1),
               "MB on average (VmRSS)": round(sum(s["VmRSS"] for s in seen) / len(seen) / 1000, 1),
               "messages a second": round(o.memory_messages / took)}
    wrong = []
    if figures["MB at most (VmHWM)"] >= MEMORY_MB:
        wrong.append(f"memory: {figures['MB at most (VmHWM)']} MB, it should be less than {MEMORY_MB}")
    if records != o.memory_messages:
        wrong.append(f"records: {records} of {o.memory_messages} messages")
    tell("memory", figures, wrong, started)
    return not wrong


def count_records(kafka, topic, partitions):
    """By the offsets; there are no others in it."""
    from confluent_kafka import Consumer, TopicPartition
    c = Consumer({**kafka.properties(), "group.id": "count"})
    try:
        return sum(c.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(partitions))
    finally:
        c.close()


def main():
    o = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if "SLUICE_BIN" not in os.environ:
        build(Screen())  # with records
    folder = tempfile.mkdtemp(prefix="sluice-kafka-torture-")
    sluice, good = Sluice(folder), True
    parts = [o.only] if o.only else PARTS[:2]
    try:
        with Postgres(fsync=True) as pg, Kafka(nodes=1 if o.only == "memory" else 3) as kafka:
            for part in parts:
                good &= memory(o, sluice, pg, kafka) if part == "memory" else attack(o, sluice, pg, kafka, part == "faults")
            sluice.close()
    except Unreachable as e:
        sys.exit(f"no Kafka broker: {e}")
    finally:
        sluice.close()
    sluice.assert_no_reports()
    if good:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"records in {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
