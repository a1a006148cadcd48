"""What a claim costs when much waits, when much is blocked, and beside an old snapshot: the rate of a
running node in that state against the rate of the same node without it. Only stretches of the run
count: no starting, no connecting, no waiting (bench/tap.c)."""
import collections
import time

import psycopg2

from .figures import bound_text, least, markdown, say, share, spread, whole
from .program import WAYS, Node, Wrong, has_way, processor_seconds
from .tables import PostgresTable

NAME = "claims"
WHAT = """One worker into null:; messages per second of a running node, counted from its first batch on. by processor:
the ratio of the processor time of node and server for a message, which a busy machine disturbs less.
backlog: the first 100,000 of a million waiting messages, against ten times 10,000 that are added while it is paused.
blocked: 100,000 messages, beside 100,000 that wait behind 20 scheduled ones of their key and were set aside before,
against the same without those. skip-locked has no order: there all of them are scheduled.
snapshot: 100,000 messages, after 500,000 that went through the same node while another session held a snapshot open,
against the same without that session."""

Scenario = collections.namedtuple("Scenario", "name measure way bound")
# What was delivered in which time; and, from a little earlier to a little later, with how much processor time.
Stretch = collections.namedtuple("Stretch", "messages seconds processor_messages processor_seconds")
Sizes = collections.namedtuple("Sizes", "small large stretch blocked_keys blocked_each before")


def sizes(options):
    n = options.scale
    return Sizes(small=int(10000 * n), large=int(1000000 * n), stretch=int(100000 * n), blocked_keys=20,
                 blocked_each=int(5000 * n), before=int(500000 * n))


def ways():
    return [w for w in WAYS if w.name != "skip-locked-lease"]


def scenarios():
    found = []
    for measure, bound in ((backlog, 0.8), (blocked, 0.8), (snapshot, 0.5)):
        for way in ways():
            promised = not way.name.startswith("skip-locked")
            found.append(Scenario(f"claim-{measure.__name__}-{way.name}", measure, way, bound if promised else None))
    return found


# -- the stretches ---------------------------------------------------------------------------------

def used(node, table):
    return processor_seconds(table.server.pid) + processor_seconds(node.process.pid)


def watch(node, table, first, rows):
    """The first four fifths of what the node takes beyond `first`: the last batches are not full."""
    before, used_before = node.taken, used(node, table)
    if not node.wait_taken(first + rows * 4 // 5):
        say(f"  only {node.taken - first} of {rows} messages in {node.limit:g} s")
    used_after = used(node, table)
    messages, seconds = node.stretch(first, first + rows * 4 // 5)
    return Stretch(messages, seconds, node.taken - before, max(used_after - used_before, 0.01))


def feed(node, table, rows):
    """Adds messages under the paused node, lets it take them all, and returns the counted stretch. The
    checkpoint makes the first change of each page cost what it costs in a table that lay still."""
    node.look()
    first = node.taken
    node.pause()
    table.add(rows)
    table.server.sql("SELECT count(octet_length(payload)) FROM outbox")  # sets the hint bits, as vacuum would
    table.server.sql("CHECKPOINT")
    node.resume()
    stretch = watch(node, table, first, rows)
    wait_gone(node, table)
    return stretch


def wait_gone(node, table):
    """Until what it took is settled too."""
    waiting = "SELECT EXISTS (SELECT FROM outbox WHERE NOT held AND available_at <= now())"
    end = time.monotonic() + node.limit
    while table.server.sql(waiting) == "t":
        if time.monotonic() > end:
            raise Wrong("messages that could go are still there")
        time.sleep(0.02)


def rates(stretches):
    return {"rate": sum(s.messages for s in stretches) / sum(s.seconds for s in stretches),
            "per_processor_second": sum(s.processor_messages for s in stretches) / sum(s.processor_seconds for s in stretches)}


def finish(node, table, expected, left):
    sent = node.stop()
    if expected is not None and sent != expected:
        raise Wrong(f"{sent} of {expected} messages were sent")
    if left is not None and table.left() != (left, 0):
        raise Wrong(f"after the run there are {table.left()} messages and dead letters, not {left}")


# -- backlog ---------------------------------------------------------------------------------------

def backlog_without(options, table, way):
    n = sizes(options)
    table.fill(0)
    with Node(options, table, way) as node:
        fills = n.stretch // n.small
        stretches = [feed(node, table, n.small) for _ in range(fills)]
        finish(node, table, n.small * fills, 0)
    return rates(stretches)


def backlog_with(options, table, way):
    n = sizes(options)
    table.fill(n.large)
    with Node(options, table, way) as node:
        node.wait_taken(1)
        got = rates([watch(node, table, 0, n.stretch)])
        finish(node, table, None, None)
    table.empty()
    return got


def backlog(options, table, way):
    return backlog_without, backlog_with


# -- blocked ---------------------------------------------------------------------------------------

def blocked_run(options, table, way, waiting):
    n = sizes(options)
    table.fill(0)
    extra = {}
    if waiting:
        add_blocked(table, way, n)
    with Node(options, table, way) as node:
        if waiting:
            extra["set_aside"] = wait_set_aside(table, n)
        got = rates([feed(node, table, n.stretch)])
        finish(node, table, n.stretch, waiting)
    return {**got, **extra}


def add_blocked(table, way, n):
    key = f"'blocked:' || g % {n.blocked_keys}"
    later = "now() + interval '1 hour'"
    behind = later if way.name.startswith("skip-locked") else "now()"
    table.add(n.blocked_keys, key, later)
    table.add(n.blocked_keys * n.blocked_each, key, behind)


def wait_set_aside(table, n):
    """Until the node has marked what is blocked, or has stopped marking. Seconds, and how many."""
    began, count, since = time.monotonic(), -1, time.monotonic()
    while count < n.blocked_keys * (n.blocked_each + 1) and time.monotonic() - since < 3:
        now = int(table.server.sql("SELECT count(*) FROM outbox WHERE held"))
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.1)
    return {"messages": count, "seconds": round(since - began, 1)}


def blocked_without(options, table, way):
    return blocked_run(options, table, way, 0)


def blocked_with(options, table, way):
    n = sizes(options)
    return blocked_run(options, table, way, n.blocked_keys * (n.blocked_each + 1))


def blocked(options, table, way):
    return blocked_without, blocked_with


# -- snapshot --------------------------------------------------------------------------------------

def snapshot_run(options, table, way, session):
    n = sizes(options)
    table.fill(0)
    fills = n.before // n.stretch
    with Node(options, table, way) as node:
        if session:
            session.cursor().execute("SELECT count(*) FROM outbox")
        stretches = [feed(node, table, n.stretch) for _ in range(fills + 1)]
        finish(node, table, n.stretch * (fills + 1), 0)
    return {**rates(stretches[-1:]), "each": [round(rates([s])["rate"]) for s in stretches]}


def snapshot_without(options, table, way):
    return snapshot_run(options, table, way, None)


def snapshot_with(options, table, way):
    session = psycopg2.connect(table.url)
    session.set_session(isolation_level="REPEATABLE READ")
    try:
        return snapshot_run(options, table, way, session)
    finally:
        session.rollback()
        session.close()


def snapshot(options, table, way):
    return snapshot_without, snapshot_with


# -- all -------------------------------------------------------------------------------------------

def brief(figures):
    return " ".join(f"{k}={round(v) if isinstance(v, float) else v}" for k, v in figures.items())


def run_scenario(options, s, table):
    without, with_it = s.measure(options, table, s.way)
    rounds = []
    for i in range(options.claim_rounds):
        got = {}
        for how in (without, with_it)[::1 if i % 2 == 0 else -1]:
            got[how] = how(options, table, s.way)
        rounds.append((got[without], got[with_it]))
        say(f"{s.name} {i + 1}/{options.claim_rounds}: without {brief(got[without])}, with {brief(got[with_it])}")
    ratio, by_processor = (spread([b[what] / a[what] for a, b in rounds]) for what in ("rate", "per_processor_second"))
    return {
        "part": NAME, "scenario": s.name, "rounds": len(rounds), "batch": options.batch, "sizes": sizes(options)._asdict(),
        "without": spread([a["rate"] for a, _ in rounds]), "with": spread([b["rate"] for _, b in rounds]),
        "ratio": ratio, "processor_ratio": by_processor, "details": rounds, "bound": least(s.bound, ratio["median"]) if s.bound else None,
    }


def run(options, chosen, settings):
    table = PostgresTable(options)
    try:
        settings.append(table.settings())
        table.fill(sizes(options).large)  # a new server makes its log files while it is first written to
        table.empty()
        known = [w for w in ways() if has_way(options, w, table.url)]
        for s in chosen:
            if s.way not in known:
                say(f"{s.name}: left out, since the program has no strategy {s.way.name}")
        return [run_scenario(options, s, table) for s in chosen if s.way in known]
    finally:
        table.close()


def table(results):
    return markdown(("scenario", "without (min..max)", "with (min..max)", "ratio (min..max)", "demanded", "by processor"),
                    [(r["scenario"], whole(r["without"]), whole(r["with"]), share(r["ratio"]), bound_text(r),
                      f"{r['processor_ratio']['median']:.2f}")
                     for r in results])
