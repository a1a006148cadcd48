"""What is shown while the demo runs: the screen, and the progress line of plain output."""
import textwrap

from ledger import AGAIN, LATE
from screen import fill, text_of

WIDTH = 79
ROWS_OF_CUSTOMERS = 6
ROWS_OF_CAPTION = 5
NUMBERS_WIDTH = 38
RATE_COLUMN = 26
COUNT_COLUMN = 37


def many(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def ms(seconds):
    return f"{seconds * 1000:.0f} ms"


def label(name):
    return ("bold", f" {name:<9}")


def row(name, state, rate=None, count=None, rest=""):
    line = fill([label(name), state], RATE_COLUMN)
    return line if rate is None else line + [f"{rate:5.0f}/s {count:7d} {rest}"]


class View:
    """Reads the demo's state; changes nothing."""

    def __init__(self, demo):
        self.demo = demo

    # -- the screen --------------------------------------------------------------------------------

    def screen(self):
        return [self.title(), self.hint(), [],
                self.shop(), self.outbox(), *map(self.node, self.demo.nodes), self.arrived(), [],
                self.heading(), *map(self.customer, self.demo.watched[:ROWS_OF_CUSTOMERS]), self.legend(),
                [], *self.caption()]

    def title(self):
        clock = f"{self.demo.elapsed():.0f} of {self.demo.times.total:.0f} s, Ctrl-C ends it"
        left = [("bold", " Sluice demo"), ": a shop's orders on their way"]
        return fill(left, WIDTH - len(clock)) + [clock]

    def hint(self):
        return [("dim", f" try: {self.demo.workers_command()}")]

    def shop(self):
        d = self.demo
        state = ("yellow", "closed") if d.closed else ("green", "taking orders")
        return row("shop", state, d.rates.of("pushed"), d.counts.pushed,
                   "orders committed, with their messages")

    def outbox(self):
        c = self.demo.counts
        line = fill(row("outbox", f"{c.waiting} waiting"), COUNT_COLUMN)
        return line + [("yellow" if c.lag > 0.5 else None, f"lag {c.lag:.2f} s"), " (age of the oldest message)"]

    def node(self, node):
        d = self.demo
        line = row(f"node {node.name}", self.node_state(node), d.rates.of(node.name),
                   d.ledger.by_node[node.name], "delivered, ")
        return line + [self.node_owns(node)]

    def node_state(self, node):
        if node.alive:
            return ("green", f"{node.workers} workers")
        return ("red", f"KILLED {self.demo.elapsed() - node.killed_at:.0f} s ago")

    def node_owns(self, node):
        owned = self.demo.owned.get(node.name)
        if not owned:
            return "owns nothing"
        if node.alive:
            return f"owns {many(owned.lanes, 'lane')}"
        return ("red", f"{owned.waiting} wait in its {many(owned.lanes, 'lane')}")

    def arrived(self):
        p50, p99 = self.demo.ledger.percentiles(0.50, 0.99)
        return [label("arrived"), f"{self.demo.ledger.delivered} different messages; "
                                  f"latency p50 {ms(p50)}, p99 {ms(p99)}"]

    def heading(self):
        return [("bold", " Orders as they arrive"), f", by customer ({self.demo.watched_why})"]

    def customer(self, key):
        line = [f" {key}", *self.numbers(key, NUMBERS_WIDTH)]
        return fill(line, 18 + NUMBERS_WIDTH) + [self.fate(key)]

    def numbers(self, key, width):
        """The newest that fit, the newest on the right."""
        history = self.demo.ledger.history[key]
        pieces = []
        for seq, kind in reversed(history):
            piece = {LATE: ("red", f" {seq}!"), AGAIN: ("yellow", f" {seq}=")}.get(kind, f" {seq}")
            width -= len(text_of([piece]))
            if width < 0:
                break
            pieces.append(piece)
        return [" ..." if len(pieces) < len(history) else ""] + pieces[::-1]

    def fate(self, key):
        """Of this customer's message that waited in the killed node's lanes."""
        orphan = next((o for o in self.demo.orphans.values() if o.key == key), None)
        if orphan is None:
            return ""
        if orphan.taken_by:
            late = orphan.taken_at - self.demo.node_b.killed_at
            return ("green", f"{orphan.seq} by {orphan.taken_by} after {late:.1f} s")
        left = max(0.0, orphan.ends_at - self.demo.elapsed())
        return ("red", f"{orphan.seq} in lane {orphan.lane}, {left:.1f} s")

    def legend(self):
        ledger = self.demo.ledger
        return [" ", ("yellow", "7="), ("dim", " a second time: "),
                ("yellow" if ledger.duplicates else "dim", many(ledger.duplicates, "duplicate")), "   ",
                ("red", "7!"), ("dim", " after a higher one: "),
                ("red" if ledger.violations else "dim", many(ledger.violations, "order violation"))]

    def caption(self):
        title, text = self.demo.caption()
        lines = text.split("\n") if "\n" in text else textwrap.wrap(text, WIDTH - 1)
        return [[("cyan", f" {title}")], *[[" " + line] for line in lines[:ROWS_OF_CAPTION]]]

    # -- plain lines -------------------------------------------------------------------------------

    def progress(self):
        d = self.demo
        nodes = ", ".join(f"{n.name} {d.rates.of(n.name):.0f}/s" if n.alive else f"{n.name} dead" for n in d.nodes)
        return (f"{d.elapsed():5.1f} s  pushed {d.counts.pushed}, delivered {d.ledger.delivered} ({nodes}), "
                f"lag {d.counts.lag:.2f} s, {many(d.ledger.duplicates, 'duplicate')}, "
                f"{many(d.ledger.violations, 'order violation')}")

    def arrivals(self):
        """The watched customers, as the screen would show them."""
        return ["         " + text_of(self.customer(key)).strip() for key in self.demo.watched[:ROWS_OF_CUSTOMERS]]
