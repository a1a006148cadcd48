"""The scenes: what happens when, and what the screen says about it."""
import contextlib
import fcntl
import time

import producer
from children import Trouble
from stage import PATIENCE, Stage
from views import many

HANDFUL = 8  # messages that a node should have on its hands when it is killed
BRIEFLY = 0.1  # seconds to wait for such a moment

CAPTION_BOTH = ("It was started again and takes its share of the work. Nothing had to be repaired: all that "
                "the nodes know is in the database.")
CAPTION_DRAIN = "The nodes deliver what is left in the outbox."
CAPTION_LINGER = "Next, both nodes are told to end (TERM), and the summary follows."


class Times:
    """When what happens, in seconds from the start."""

    def __init__(self, total):
        self.total = total
        self.kill = total * 0.33
        self.hunt = total * 0.08  # how long to look for a good moment to kill
        self.restart = total * 0.60
        self.close = total * 0.88
        self.lease = max(1, min(3, int(total / 10)))


class Orphan:
    """A message that was in the killed node's lanes."""

    def __init__(self, waiting, now, in_file):
        self.id, self.key, self.seq, self.lane = waiting.id, waiting.key, waiting.seq, waiting.lane
        self.ends_at = now + waiting.seconds_left
        self.in_file = in_file  # delivered already, but the database does not know
        self.taken_by = self.taken_at = self.kind = None


class Story(Stage):
    """Each scene is a method: called at every tick, it returns the scene for the next one."""

    def opening(self):
        return self.flow if self.elapsed() >= self.times.kill / 2 else self.opening

    def flow(self):
        return self.hunt if self.elapsed() >= self.times.kill else self.flow

    def hunt(self):
        """A kill shows nothing while the node's hands are empty, and here they mostly are: with a
        file and SQLite, a message passes through in a moment. So both are made as slow as if there
        was a network, for some milliseconds: first the file, until node B has its hands full; then
        the database, while it delivers. There it is frozen, looked at, and killed or let go."""
        searched = self.elapsed() - self.times.kill
        if searched > 2 * self.times.hunt:
            return self.kill()
        with contextlib.ExitStack() as database:
            with self.nobody_delivers():
                self.wait_briefly(lambda: len(self.undelivered()) >= HANDFUL)
                database.enter_context(self.observer.nobody_writes())
            self.wait_briefly(self.delivering)
            self.node_b.child.freeze()
        if self.good_moment(searched):
            return self.kill()
        self.node_b.child.thaw()
        return self.hunt

    @contextlib.contextmanager
    def nobody_delivers(self):
        """Whoever appends to the file locks it first."""
        with open(self.tail.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            yield  # and closing it unlocks

    def wait_briefly(self, condition):
        end = time.monotonic() + BRIEFLY
        while time.monotonic() < end and not condition():
            pass  # a sleep would miss what lasts for less than a millisecond

    def undelivered(self):
        """Of what is in the lanes of node B."""
        self.read_file()
        return [w for w in self.observer.in_lanes_of("B") if w.id not in self.ledger.ids]

    def delivering(self):
        before = self.ledger.by_node["B"]
        self.read_file()
        return self.ledger.by_node["B"] > before

    def good_moment(self, searched):
        """Best is some of both: messages that are in the file already, and others that are not. But
        not at any price."""
        waiting = len(self.undelivered())
        delivered = len(self.observer.in_lanes_of("B")) - waiting
        enough = min(waiting, delivered) if searched < self.times.hunt else waiting + delivered
        return enough > 0

    def kill(self):
        node = self.node_b
        node.child.kill()
        node.alive = False
        node.killed_at = self.elapsed()
        self.read_file()  # all that it wrote; what comes from here on comes from others
        for waiting in self.observer.in_lanes_of(node.name):
            self.orphans[waiting.id] = Orphan(waiting, node.killed_at, waiting.id in self.ledger.ids)
        self.watched, self.watched_why = self.orphan_keys(), "whose orders were with node B"
        self.event("node B is killed (kill -9): " + self.hands())
        self.show_arrivals()
        return self.orphaned

    def orphan_keys(self):
        """Of both kinds, those first that have to wait."""
        orphans = sorted(self.orphans.values(), key=lambda o: o.in_file)
        kept = [o.key for o in orphans if not o.in_file][:3]
        return list(dict.fromkeys(kept + [o.key for o in orphans[::-1]]))

    def hands(self):
        orphans = self.orphans.values()
        in_file = sum(1 for o in orphans if o.in_file)
        return (f"it had {many(len(orphans), 'message')} in its lanes, {in_file} of them delivered but not yet "
                f"settled, {len(orphans) - in_file} not yet delivered")

    def show_arrivals(self):
        for line in self.view.arrivals():
            self.show.event(line)

    def orphaned(self):
        if self.elapsed() >= self.times.close:
            return self.both  # they do not come; the summary will tell
        if any(o.taken_by is None for o in self.orphans.values()):
            return self.orphaned
        self.event("the lease has ended: " + self.takers())
        self.show_arrivals()
        return self.without_b

    def takers(self):
        orphans = self.orphans.values()
        names = " and ".join(sorted({"node " + o.taken_by.split("/")[0] for o in orphans}))
        again = sum(1 for o in orphans if o.in_file)
        return (f"{names} owns the lanes of node B and has delivered its {many(len(orphans), 'message')}; "
                f"{again} arrived a second time")

    def without_b(self):
        if self.elapsed() < self.times.restart:
            return self.without_b
        self.start_node(self.node_b)
        self.watch_some()
        self.event("node B is started again")
        return self.both

    def both(self):
        if self.elapsed() < self.times.close:
            return self.both
        self.close_shop()
        self.event("the shop closes; the nodes deliver what is left")
        return self.drain

    def drain(self):
        self.observe()
        if self.counts.waiting == 0:
            self.event("the outbox is empty")
            return self.linger
        if self.elapsed() > self.times.close + PATIENCE:
            raise Trouble(f"the outbox is not empty {PATIENCE} s after the shop closed: "
                          f"{many(self.counts.waiting, 'message')} left")
        return self.drain

    def linger(self):
        """The last screen stays long enough to be read."""
        return self.linger if self.elapsed() < self.times.total - 0.5 else None

    # -- the captions ------------------------------------------------------------------------------

    def caption(self):
        """Title and text for the scene: what a newcomer should know now."""
        return {
            self.opening: ("For each order the shop runs one transaction:", producer.SHOWN),
            self.orphaned: ("Node B was killed: kill -9", self.caption_orphaned()),
            self.without_b: ("Node A has taken over", self.caption_recovered()),
            self.both: ("Node B is back", CAPTION_BOTH),
            self.drain: ("The shop has closed", CAPTION_DRAIN),
            self.linger: ("The outbox is empty", CAPTION_LINGER),
        }.get(self.scene, ("Two nodes share the work", self.caption_flow()))

    def caption_flow(self):
        return ("They need no coordinator but the database. Customers hash to 64 lanes, and a lane is owned by one "
                f"node, under a lease of {self.times.lease} s which its heartbeat renews: so the orders of one customer "
                "arrive in order, never two at once. Soon node B will be killed with messages in its hands.")

    def caption_orphaned(self):
        left = max([o.ends_at for o in self.orphans.values()], default=0) - self.elapsed()
        return (f"At that moment {self.hands()}. Nobody else may touch its lanes before the lease ends, in "
                f"{max(0.0, left):.1f} s (by default a lease is 30 s; here it is short). Until then later orders of "
                "these customers wait behind them: none overtakes. All others go on with node A.")

    def caption_recovered(self):
        again = sum(1 for o in self.orphans.values() if o.in_file)
        return (f"The lease ended. Node A took the lanes over and delivered the {many(len(self.orphans), 'message')} of "
                f"node B, and what had queued up behind them, in order. {again} arrived a second time (7=): node B "
                "had delivered them, but was killed before it could settle them. The others arrived once, but late. "
                "None is lost.")
