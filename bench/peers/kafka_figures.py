"""Percentiles, and whether what arrived is what was committed."""
import collections
import math
import re

from parts.program import Wrong
from parts.tables import KEYS

Arrived = collections.namedtuple("Arrived", "first duplicates")  # {number: milliseconds of its first arrival}
NUMBER = re.compile(rb'{"n":(\d+),')
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
HALF_MILLISECOND = 0.5  # the broker's clock leaves out what is below a millisecond


def percentiles(values):
    """By nearest rank: a value that was measured."""
    ordered = sorted(values)
    return {name: ordered[max(math.ceil(share * len(ordered)), 1) - 1] for name, share in PERCENTILES.items()}


def arrivals(records, rows):
    """All messages from 1 to `rows`, each with its key, and the first arrivals of a key in its order; else Wrong.
    `records` as a topic has them, sorted by partition and offset. A record that comes again is counted."""
    first, last, duplicates, home = {}, {}, 0, {}
    for r in records:
        number = int(NUMBER.match(r.value).group(1))
        if r.key != b"order:%d" % (number % KEYS):
            raise Wrong(f"message {number} has the key {r.key}")
        if home.setdefault(r.key, r.partition) != r.partition:
            raise Wrong(f"{r.key} is in two partitions, {home[r.key]} and {r.partition}")
        if number in first:
            duplicates += 1
            continue
        if number < last.get(r.key, 0):
            raise Wrong(f"message {number} of {r.key} came after {last[r.key]}")
        first[number], last[r.key] = r.timestamp, number
    if set(first) != set(range(1, rows + 1)):
        raise Wrong(f"{len(first)} different messages arrived of {rows}")
    return Arrived(first, duplicates)


def latencies(first, commits):
    """Milliseconds from the answer to COMMIT until the record was in the broker's log.
    `commits`: (first number, last number, began, answered), in seconds."""
    return [max(first[n] + HALF_MILLISECOND - answered * 1000, 0)
            for low, high, _, answered in commits for n in range(low, high + 1)]
