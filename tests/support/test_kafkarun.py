"""The judge of Kafka's histories under test: what it excuses, and that it excuses nothing else."""
import pytest

import record as rec
from checker import Record
from kafkarun import UNKNOWN, KafkaHistory
from record import Events
from test_history import LEASE, Story


class Log(Story):
    """Lines are records, which do not say who sent them."""

    def line(self, id, worker="", epoch=1, attempt=0):
        return super().line(id, "", epoch, attempt)

    def unknown(self, at, ids, worker="a/1", epoch=1, writes=True):
        """Sent, and no answer came."""
        for i, id in enumerate(ids):
            for n, (kind, extra) in enumerate([(rec.TAKEN, 1), (rec.SEND, 1), (rec.RESULT, UNKNOWN), (rec.SETTLED, 1)]):
                self.event(kind, at + 0.02 * n + i / 1e6, id, worker, epoch, extra)
        for id in ids if writes else ():
            self.line(id, epoch=epoch)
        return self

    def history(self, **kw):
        events = Events(sorted(self.events, key=lambda e: e.at))
        self.made = KafkaHistory(self.messages, Record(self.lines), events, self.faults, lease=LEASE, batch=3, **kw)
        return self.made


def log():
    return Log().commit(1, 2, 3, 4)


def test_the_sender_is_found_by_message_and_epoch():
    log().turn(1, [1, 2]).turn(2, [3, 4], "b/1", 2).good()
    assert log().turn(1, [1, 2]).turn(2, [3, 4], "b/1", 2).history().deliveries[2].worker == "b/1"


def test_what_is_unknown_comes_again_in_the_same_epoch():
    got = log().unknown(1, [1, 2]).turn(2, [1, 2, 3, 4]).good()
    assert (got["duplicates"], got["bound"]) == (2, 2)


def test_or_was_never_there():
    got = log().unknown(1, [1, 2], writes=False).turn(2, [1, 2, 3, 4], "a/2").good()
    assert (got["duplicates"], got["bound"]) == (0, 2)


def test_what_was_confirmed_does_not_come_again():
    log().turn(1, [1, 2]).turn(2, [1, 2, 3, 4]).bad("duplicates: ", "again by a/1 in epoch 1")


def late(epoch=1):
    """Of a former producer of the same worker, or of a former owner: behind what was sent afterwards."""
    s = log().unknown(1, [1, 2], writes=False).turn(2, [1, 2, 3], "b/1", epoch)
    s.line(1).line(2)
    return s.turn(3, [4], "b/1", epoch)


@pytest.mark.parametrize("epoch", [1, 2])
def test_what_is_unknown_may_be_late(epoch):
    s = late(epoch)
    got = s.good()
    assert got["duplicates"] == len(s.made.late) == 2


@pytest.mark.parametrize("epoch", [1, 2])
def test_but_not_with_a_fence(epoch):
    late(epoch).bad("order: " if epoch == 1 else "epochs: ", fence=True)


def test_only_as_often_as_it_was_unknown():
    s = log().unknown(1, [1], writes=False).turn(2, [1, 2, 3], "b/1", 1)
    s.line(1).line(2)
    s.turn(3, [4], "b/1", 1).bad("order: ", "duplicates: ", "record: ")


def test_late_or_not_nothing_overtakes():
    log().unknown(1, [1], writes=False).turn(2, [1, 3, 2, 4]).bad("order: ")


def test_nothing_that_is_unknown_may_be_missing():
    log().unknown(1, [1, 2], writes=False).turn(2, [3, 4]).bad("loss: message 1", "loss: message 2", "order: ")
