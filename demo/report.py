"""The summary, and the verdict on which the exit status hangs."""
import textwrap

from ledger import AGAIN
from views import many, ms


class Report:
    """Compares what arrived with the shop's own table, which Sluice never writes to."""

    def __init__(self, demo):
        self.demo = demo
        self.ledger = demo.ledger
        pushed, arrived, outbox = demo.observer.orders(), demo.ledger.messages(), demo.observer.outbox()
        self.pushed = len(pushed)
        self.waiting = len(outbox - arrived)
        self.lost = pushed - arrived - outbox
        self.invented = arrived - pushed

    @property
    def good(self):
        return not self.lost and not self.invented and not self.ledger.violations

    def verdict(self):
        if self.lost:
            return f"FAILED: {many(len(self.lost), 'message')} lost, such as {example(self.lost)}"
        if self.invented:
            return (f"FAILED: {many(len(self.invented), 'message')} delivered that no order was committed for, "
                    f"such as {example(self.invented)}")
        if self.ledger.violations:
            return f"FAILED: {many(self.ledger.violations, 'order')} overtaken by a later one of the same customer"
        if self.waiting:
            return "Nothing was lost: each order has arrived or still waits in the outbox."
        return "Nothing was lost: each order that was committed has arrived."

    def lines(self):
        yield [("bold", f"Summary after {self.demo.elapsed():.1f} s")]
        yield []
        yield from map(figure, self.figures())
        yield []
        yield from paragraph(self.crash())
        yield from paragraph(self.order())
        yield [("green" if self.good else "red", "  " + self.verdict())]

    def figures(self):
        p50, p99 = self.ledger.percentiles(0.50, 0.99)
        yield "pushed", self.pushed, "orders committed, each with its message"
        yield "delivered", self.ledger.delivered, "of these arrived"
        if self.waiting:
            yield "waiting", self.waiting, "of these are still in the outbox"
        yield "lost", len(self.lost), ""
        yield "duplicates", self.ledger.duplicates, "arrived a second time" + self.share()
        yield "order violations", self.ledger.violations, "overtaken by a later one of the same customer"
        yield "latency p50", ms(p50), "from the INSERT to the line in the file"
        yield "latency p99", ms(p99), "of those that waited for the lease" if self.demo.orphans else ""

    def share(self):
        """How many of these are the kill's doing."""
        n = sum(1 for o in self.demo.orphans.values() if o.kind == AGAIN)
        return f", {n} because of the kill" if n else ""

    def crash(self):
        orphans = self.demo.orphans.values()
        if not orphans:
            return ""
        late = [o.taken_at - self.demo.node_b.killed_at for o in orphans if o.taken_by]
        text = f"Node B died with {many(len(orphans), 'message')} in its lanes. "
        if not late:
            return text + "Its lease had not ended yet."
        takers = " and ".join(sorted({"node " + o.taken_by.split("/")[0] for o in orphans if o.taken_by}))
        share = "all" if len(late) == len(orphans) else str(len(late))
        return text + (f"After its lease of {self.demo.times.lease} s had ended, {takers} delivered {share} of them, "
                       f"the last one {max(late):.1f} s after the kill.")

    def order(self):
        text = ("Order: strategy lanes, the default, keeps the order of each key; here a key is a customer. "
                "A lane has one owner at a time, so no order overtakes an earlier one of its customer")
        if self.demo.queued > len(self.demo.orphans):
            text += f": up to {self.demo.queued} orders waited while the lanes of node B had no living owner"
        return text + "."


def example(messages):
    key, seq = min(messages)
    return f"order {seq} of {key}"


def figure(f):
    name, value, meaning = f
    return [f"  {name:<17}", ("bold", f"{value:>8}"), f"   {meaning}" if meaning else ""]


def paragraph(text):
    """Indented, with an empty line behind; nothing for an empty text."""
    if text:
        yield from ([line] for line in textwrap.wrap(text, 78, initial_indent="  ", subsequent_indent="  "))
        yield []
