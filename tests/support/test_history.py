"""The judge of histories under test: it must refuse each kind of bad history, and an empty one."""
import os

import pytest

import record as rec
from checker import BadHistory, Delivery, Record, message
from history import SECOND, Fault, Heal, History, left_behind
from record import BadRecord, Event, Events, Tail

LEASE = 2.0
OK = message("orders", "k", b"{}").digests


class Story:
    """A history by hand. Times are seconds."""

    def __init__(self):
        self.messages, self.commits, self.lines, self.events, self.faults = {}, {}, [], [], []

    def commit(self, *ids, key="k", at=0.0):
        for id in ids:
            self.messages[id] = message("orders", key, b"{}")
            self.commits[id] = int(at * SECOND)
        return self

    def event(self, kind, at, id, worker="a/1", epoch=1, extra=0, pid=None):
        pid = pid or ord(worker[0])
        self.events.append(Event(int(at * SECOND), pid, worker, kind, id, 0, epoch, extra))
        return self

    def line(self, id, worker="a/1", epoch=1, attempt=1):
        m = self.messages.get(id)
        self.lines.append(Delivery(len(self.lines) + 1, id, "orders", m.key if m else "k", epoch, attempt, worker, OK))
        return self

    def turn(self, at, ids, worker="a/1", epoch=1, took=0.1, upto=rec.SETTLED, writes=True, pid=None):
        """take, send, result, settle, a tenth of a second from end to end; or only up to a step."""
        for n, (kind, extra) in enumerate([(rec.TAKEN, 1), (rec.SEND, 1), (rec.RESULT, rec.SENT), (rec.SETTLED, 1)]):
            if kind <= upto:
                for i, id in enumerate(ids):
                    self.event(kind, at + took * n / 4 + i / 1e6, id, worker, epoch, extra, pid)
        for id in ids if writes else ():
            self.line(id, worker, epoch)
        return self

    def fault(self, kind, at, worker="a/1", until=None, pid=None):
        pid = pid or (0 if kind == "pg" else ord(worker[0]))
        self.faults.append(Fault(kind, pid, int(at * SECOND), int(at * SECOND) + 1, int((until or at) * SECOND)))
        return self

    def history(self, **kw):
        kw.setdefault("commits", self.commits)
        events = Events(sorted(self.events, key=lambda e: e.at))
        return History(self.messages, Record(self.lines), events, self.faults, lease=LEASE, batch=3, **kw)

    def good(self, least=None, **kw):
        return self.history(**kw).judge(least)

    def bad(self, *texts, least=None, **kw):
        """Refused, with each of the texts; and with nothing else."""
        with pytest.raises(BadHistory) as e:
            self.history(**kw).judge(least)
        wrong = [line for line in str(e.value).split("\n")[1:] if not line.startswith("    ")]
        for text in texts:
            assert any(text in line for line in wrong), f"no '{text}' in\n{e.value}"
        left = [line for line in wrong if not any(text in line for text in texts)]
        assert not left, f"besides {texts}: {left}"
        return str(e.value)


def story():
    return Story().commit(1, 2, 3, 4, 5)


# -- What is right -------------------------------------------------------------------------------

def test_a_good_history_has_figures():
    s = story().turn(1, [1, 2]).turn(2, [3], "b/1", 2).turn(3, [4, 5], "b/2", 2)
    got = s.good({"messages": 5, "claims": 5, "workers": 3})
    assert (got["deliveries"], got["duplicates"], got["bound"], got["violations"]) == (5, 0, 0, 0)
    assert got["kills"] == got["pauses"] == got["restarts"] == 0


def test_messages_without_a_key_have_no_order():
    Story().commit(1, 2, 3, key=None).turn(1, [3]).turn(1, [2], "b/1").turn(1, [1], "c/1").good()


def test_keys_are_independent():
    s = Story().commit(1, 3, key="x").commit(2, 4, key="y")
    s.turn(1, [2, 4]).turn(1, [1, 3], "b/1").good()


def test_an_unordered_strategy_is_judged_by_message():
    story().turn(1, [4, 5]).turn(1, [1, 2, 3], "b/1").good(ordered=False)
    s = story().turn(1, [1, 2, 3, 4, 5]).turn(1.01, [5], "b/1", 2).fault("pg", 1, until=1.1)
    s.bad("exclusion: key ('no key', 5)", ordered=False)


# -- Too little ----------------------------------------------------------------------------------

def test_an_empty_history_proves_nothing():
    Story().bad("least: 0 messages", "least: 0 claims")


def test_too_little_proves_nothing():
    s = story().turn(1, [1, 2, 3, 4, 5]).fault("kill", 3)
    s.bad("least: 0 kills, there should be 1", "least: 5 messages, there should be 6", least={"kills": 1, "messages": 6})
    story().turn(1, [1, 2, 3, 4, 5]).fault("pause", 3, until=9).bad("least: 0 pauses", least={"pauses": 1})


def test_a_pause_shorter_than_the_lease_does_not_count():
    s = story().turn(1, [1, 2, 3, 4, 5], took=4).fault("pause", 2, until=3.9)
    s.bad("least: 0 pauses", least={"pauses": 1})
    story().turn(1, [1, 2, 3, 4, 5], took=4).fault("pause", 2, until=4.1).good({"pauses": 1})


# -- Loss and duplicates -------------------------------------------------------------------------

def test_loss():
    story().turn(1, [1, 2, 3]).turn(2, [4]).bad("loss: message 5 never arrived")
    story().turn(1, [1, 2, 3, 4]).good(dead={5})


def killed():
    """a/1 is killed with 1 2 3 in flight, which it had written."""
    return story().turn(1, [1, 2, 3], upto=rec.SEND).fault("kill", 1.05)


def test_duplicates_of_what_was_in_flight_at_a_kill():
    got = killed().turn(2, [1, 2, 3, 4, 5], "b/1", 2).good({"kills": 1})
    assert (got["duplicates"], got["bound"], got["in flight"]) == (3, 3, 3)


def test_duplicates_of_what_was_not():
    s = story().turn(1, [1, 2]).turn(1.2, [3], upto=rec.SEND).fault("kill", 1.3)
    s.turn(2, [1, 2, 3, 4, 5], "b/1", 2)
    s.bad("duplicates: message 1 was delivered 2 times", "duplicates: message 2 was", "duplicates: 3 in all, at most 1")


def test_duplicates_after_a_clean_leave():
    s = story().turn(1, [1, 2, 3]).fault("leave", 1.5).turn(2, [3, 4, 5], "b/1", 2)
    s.bad("duplicates: message 3 was delivered 2 times", "duplicates: 1 in all, at most 0")


def test_duplicates_after_an_outage_of_the_database():
    s = story().turn(1, [1, 2, 3], upto=rec.RESULT).fault("pg", 1.1, until=2)
    s.event(rec.LOST, 1.2, 1).event(rec.LOST, 1.2, 2).event(rec.LOST, 1.2, 3)
    assert s.turn(3, [1, 2, 3, 4, 5]).good({"restarts": 1})["duplicates"] == 3


# -- Order ---------------------------------------------------------------------------------------

def test_runs_may_start_again():
    s = Story().commit(1, 2, 3, 4).turn(1, [1, 2, 3], upto=rec.RESULT).fault("kill", 1.2)
    s.turn(4, [2, 3, 4], "b/1", 2, took=0.2).good()


def test_a_gap():
    text = Story().commit(1, 2, 3).turn(1, [1]).turn(2, [3], "b/1", 2).turn(3, [2], "c/1", 3).bad(
        "order: key k: line 2 delivers message 3, number 3 of its key, after number 1 (line 1)")
    assert "b/1        TAKEN    3 epoch 2  (process 98)" in text  # the history of that key


def test_a_late_start():
    Story().commit(1, 2).turn(1, [2]).turn(2, [1], "b/1", 2).bad("message 2, number 2 of its key, first")


def test_a_gap_behind_a_repeat():
    """2 again and then 4: who repeats 2 had not settled 3 either."""
    s = Story().commit(1, 2, 3, 4).turn(1, [1, 2, 3], upto=rec.RESULT).fault("kill", 1.2)
    s.turn(4, [2], "b/1", 2).turn(5, [4], "b/1", 2).bad("order: key k: line 5 delivers message 4, number 4")


def test_a_repeat_within_an_epoch():
    s = killed().fault("kill", 9, "b/1")
    s.turn(2, [1, 2], "b/1", 2, upto=rec.RESULT).event(rec.LOST, 2.2, 1, "b/1", 2).event(rec.LOST, 2.2, 2, "b/1", 2)
    s.turn(3, [1, 2, 3, 4, 5], "b/1", 2)
    s.bad("line 6 delivers message 1, number 1 of its key, after number 2 (line 5), again by b/1 in epoch 2",
          "duplicates: message 1 was delivered 3 times", "duplicates: message 2 was delivered 3 times",
          "duplicates: 5 in all", "claims: b/1 (process 98) lost message")


def test_the_same_name_is_not_the_same_process():
    """A node that is restarted under its name, where there are no epochs."""
    s = killed().turn(2, [1, 2, 3, 4, 5], "a/1", 1, pid=500)
    assert s.good(epochs=False)["duplicates"] == 3


# -- Exclusion -----------------------------------------------------------------------------------

def test_two_workers_at_once():
    s = Story().commit(1, 2).turn(1, [1]).turn(1.04, [2], "b/1", 2)
    s.bad("exclusion: key k: b/1 (process 98) has it beside a/1 (process 97) for 10.000 ms")
    Story().commit(1, 2).turn(1, [1]).turn(1.04, [2], "a/2", 2).bad("exclusion: key k: a/2 (process 97) has it beside a/1")


def test_the_settle_belongs_to_nobody():
    """The row is free before its worker knows."""
    Story().commit(1, 2).turn(1, [1]).turn(1.06, [2], "b/1", 2).good()


def test_one_worker_may_take_more():
    Story().commit(1, 2).turn(1, [1]).turn(1.04, [2]).good()


def test_a_killed_worker_holds_nothing():
    killed().turn(1.06, [1, 2, 3, 4, 5], "b/1", 2).good()
    killed().turn(1.04, [1, 2, 3, 4, 5], "b/1", 2).bad("exclusion: key k: b/1")


# -- Zombies -------------------------------------------------------------------------------------

def paused(sends_late=(), writes=(), settles=False, knows=5.1):
    """a/1 takes 1 2 3 and sends 1, and is paused from 1.05 to 5; b/1 takes and delivers all; a/1
    wakes up, sends `sends_late`, and `writes` stand behind b/1's in the sink."""
    s = story().turn(1, [1, 2, 3], upto=rec.TAKEN, writes=False).event(rec.SEND, 1.02, 1)
    s.fault("pause", 1.05, until=5).turn(4, [1, 2, 3, 4, 5], "b/1", 2)
    for id in sends_late:
        s.event(rec.SEND, 5.01, id)
    for id in (1, 2, 3):
        s.event(rec.RESULT, knows, id, extra=rec.SENT if id in writes else 5)
        s.event(rec.LOST, knows + 0.01, id)
    for id in writes:
        s.line(id)
    return s


def test_a_zombie_that_knows_better():
    got = paused().good({"pauses": 1})
    assert (got["zombie overlaps"], got["zombie sends"], got["zombie deliveries"], got["overlaps"]) == (1, 0, 0, 0)


def test_a_zombie_that_was_about_to_send():
    got = paused(writes=[1]).good()
    assert (got["zombie sends"], got["zombie deliveries"], got["duplicates"]) == (0, 1, 1)
    got = paused(sends_late=[2], writes=[1, 2]).good()
    assert (got["zombie sends"], got["zombie deliveries"], got["duplicates"]) == (1, 2, 2)


def test_a_zombie_that_goes_on():
    paused(sends_late=[2, 3], writes=[1, 2, 3]).bad("zombies: a/1 (process 97) began 2 sends after it woke up")


def test_a_zombie_that_believes_for_long():
    paused(knows=7).bad("zombies: a/1 (process 97) held message 1 for 2.000 s after it woke up", "zombies: a/1")


def test_more_than_a_batch():
    s = Story().commit(1, 2, 3, 4).turn(1, [1, 2, 3, 4], upto=rec.SEND, writes=False).fault("pause", 1.1, until=5)
    s.turn(4, [1, 2, 3, 4], "b/1", 2)
    for id in (1, 2, 3, 4):
        s.line(id).event(rec.RESULT, 5.01, id, extra=rec.SENT).event(rec.LOST, 5.02, id)
    s.bad("zombies: a/1 delivered 4 messages after a pause of process 97, more than its batch of 3")


def test_a_zombie_without_a_pause():
    s = Story().commit(1, 2).turn(1, [1], upto=rec.SEND, writes=False).turn(2, [1, 2], "b/1", 2)
    s.event(rec.RESULT, 3, 1, extra=rec.SENT).event(rec.LOST, 3, 1).line(1)
    s.bad("epochs: key k: line 3 (message 1, a/1, epoch 1) stands behind line 2", "exclusion: key k: b/1", "duplicates: ",
          "claims: a/1 (process 97) lost message 1, epoch 1, 2.000 s after it took it, without a fault")


def test_a_zombie_of_another_pause():
    """A short pause, and that of another process, excuse nothing."""
    s = paused(writes=[1])
    s.faults[0] = s.faults[0]._replace(until=int(1.9 * SECOND))
    s.bad("epochs: ", "exclusion: ", "duplicates: ", "claims: ")
    s = paused(writes=[1])
    s.faults[0] = s.faults[0]._replace(pid=99)
    s.bad("epochs: ", "exclusion: ", "duplicates: ", "claims: ")


def test_claims_without_epochs_are_as_young_as_they_were_taken():
    got = paused(writes=[1]).good(epochs=False)
    assert got["zombie deliveries"] == 1


def outage():
    """The database ends a/1's transaction while it sends; b/1 takes over."""
    s = Story().commit(1, 2).turn(1, [1], upto=rec.SEND, writes=False).fault("pg", 1.1, until=1.5)
    s.turn(1.6, [1, 2], "b/1", 2)
    return s.event(rec.RESULT, 2, 1, extra=rec.SENT).event(rec.LOST, 2, 1).line(1)


def test_an_outage_excuses_claims_that_are_transactions():
    got = outage().good(session_held=True)
    assert (got["zombie deliveries"], got["zombie overlaps"]) == (1, 1)


def test_an_outage_excuses_no_lease():
    outage().bad("epochs: ", "exclusion: ")


# -- Epochs, lanes, record -----------------------------------------------------------------------

def test_epochs_fall():
    Story().commit(1, 2).turn(1, [1], epoch=7).turn(2, [2], "b/1", 6).bad(
        "epochs: key k: line 2 (message 2, b/1, epoch 6) stands behind line 1 (message 1, a/1, epoch 7)")


def lanes(*events):
    s = Story().commit(1).turn(1, [1])
    for kind, at, worker, epoch in events:
        s.event(kind, at, 31, worker, epoch)
    return s


def test_lanes_change_hands():
    got = lanes((rec.GRANTED, 1, "a/0", 1), (rec.RELEASED, 2, "a/0", 1), (rec.GRANTED, 2.1, "b/0", 2)).good()
    assert got["tenures"] == 2


def test_a_lane_with_two_owners():
    s = lanes((rec.GRANTED, 1, "a/0", 1), (rec.GRANTED, 2, "b/0", 2), (rec.RELEASED, 2.5, "a/0", 1))
    s.bad("lanes: lane 31 was granted to process 98 (epoch 2) 500.000 ms before process 97 (epoch 1) let go of it")
    s.fault("pause", 1.5, "a/0", until=4).good()
    lanes((rec.GRANTED, 1, "a/0", 1), (rec.GRANTED, 2, "b/0", 2)).fault("kill", 1.9).good()


def test_a_grant_that_is_told_after_a_pause():
    s = lanes((rec.GRANTED, 4, "b/0", 2), (rec.GRANTED, 5.01, "a/0", 1), (rec.RELEASED, 9, "b/0", 2))
    s.bad("lanes: lane 31 was granted with epoch 1 to process 97 after epoch 2", "lanes: lane 31 was granted to process 97")
    s.fault("pause", 2, "a/0", until=5).good()


def test_the_epoch_of_a_lane_must_rise():
    lanes((rec.GRANTED, 1, "a/0", 2), (rec.RELEASED, 2, "a/0", 2), (rec.GRANTED, 3, "b/0", 2)).bad(
        "lanes: lane 31 was granted with epoch 2 to process 98 after epoch 2 to process 97")


def test_a_delivery_that_nobody_sent():
    Story().commit(1, 2).turn(1, [1]).line(2).bad("record: line 2 delivers message 2, which a/1 did not send in epoch 1")


def test_what_failed_is_not_there():
    s = Story().commit(1).event(rec.TAKEN, 1, 1).event(rec.SEND, 1.1, 1).event(rec.RESULT, 1.2, 1, extra=2).line(1)
    s.bad("record: line 1 delivers message 1, which a/1 did not send")


def test_what_was_sent_is_there():
    s = Story().commit(1).turn(1, [1]).turn(2, [1], writes=False)
    s.bad("record: a/1 (process 97) reported message 1 as sent, which the sink does not have")


def test_sent_without_a_claim():
    s = Story().commit(1, 2).turn(1, [1]).event(rec.SEND, 2, 2).event(rec.RESULT, 2.1, 2, extra=rec.SENT).line(2)
    s.bad("record: process 97: SEND of message 2 by a/1, who had not taken it", "record: ")


def test_a_claim_lost_without_a_fault():
    s = Story().commit(1).turn(1, [1], upto=rec.RESULT).event(rec.LOST, 1.5, 1)
    s.bad("claims: a/1 (process 97) lost message 1, epoch 1, 0.500 s after it took it, without a fault")


def test_a_claim_lost_to_a_slow_sink():
    """It was not sent, so nothing comes twice."""
    s = Story().commit(1).turn(1, [1], upto=rec.SEND, writes=False).event(rec.RESULT, 2.8, 1, extra=5)
    s.event(rec.LOST, 2.9, 1).turn(4, [1], "b/1", 2).good()


# -- Fairness and liveness -----------------------------------------------------------------------

def waiting():
    """Key x is served all the time, key y after 11.5 s."""
    s = Story().commit(2, key="y")
    for n in range(3, 43):
        s.commit(n, key="x").turn(n / 4, [n])
    return s.turn(11.5, [2])


def test_a_key_that_waits():
    waiting().bad("fairness: key y waited 11.6 s, more than 10.0 s")
    waiting().fault("pg", 3, until=6).good()  # nobody waits for the relay then


def test_waiting_behind_its_own_key_is_no_waiting():
    s = Story().commit(1, 2, 3)
    assert s.turn(5, [1]).turn(10, [2]).turn(15, [3]).good()["longest wait"] == 5.05


def test_liveness():
    s = Story().commit(1).turn(1, [1])
    s.good(heal=Heal(3.0, 4.0))
    s.bad("liveness: all was delivered 5.0 s after the last fault, more than 4.0 s", heal=Heal(5.0, 4.0))


def test_what_is_left_behind():
    tables = ["outbox", "outbox_dead", "outbox_keys", "outbox_claims", "outbox_lanes", "outbox_nodes"]

    def ask(of):
        def answer(_, sql):
            if "pg_tables" in sql:
                return [(t,) for t in tables]
            assert "{" not in sql
            return [(7 if of in sql else 0,)]
        return answer
    assert left_behind("", ask=ask("nothing")) == []
    for of, text in [("outbox_claims", "claims of keys"), ("outbox_lanes", "owned lanes"),
                     ("outbox_nodes WHERE", "live nodes"), ("pg_locks", "advisory locks"), ("idle in", "open transactions"),
                     ("outbox_keys", "blocked keys"), ("outbox_dead", "dead letters"), ("client backend", "sessions")]:
        assert left_behind("", ask=ask(of)) == [f"left behind: 7 {text}"]
    tables.remove("outbox_lanes")
    assert left_behind("", ask=ask("outbox_lanes")) == []


# -- The record's files --------------------------------------------------------------------------

def write(folder, events, begun=None, pid=42, magic=rec.MAGIC, start=7):
    data = b"".join(events)
    head = rec.HEAD.pack(magic, pid, start, len(events) if begun is None else begun)
    path = folder / f"{pid}-{start}.rec"
    path.write_bytes(head + data + bytes(rec.SLOT * 8))
    return path


def test_records_are_read_in_the_order_of_time(tmp_path):
    write(tmp_path, [rec.pack(0, 5, "n1/2", rec.TAKEN, 9, 77, 3, 1), rec.pack(1, 9, "n1/2", rec.SEND, 9, 77, 3)])
    write(tmp_path, [rec.pack(0, 7, "n2/1", rec.LOST, -1, 0, -1, -5)], pid=43)
    got = rec.read(tmp_path)
    assert got == [(5, 42, "n1/2", rec.TAKEN, 9, 77, 3, 1), (7, 43, "n2/1", rec.LOST, -1, 0, -1, -5),
                   (9, 42, "n1/2", rec.SEND, 9, 77, 3, 0)]
    assert (got.torn, got.pids) == (0, {42, 43})


def test_a_pid_that_comes_again_is_another_process(tmp_path):
    """Each with its own end: else what the first had in flight would be in its hands until the second ends."""
    write(tmp_path, [rec.pack(0, 5, "n1/1", rec.TAKEN, 1)], start=1)
    write(tmp_path, [rec.pack(0, 25, "n9/1", rec.TAKEN, 2)], start=20)
    got = rec.read(tmp_path)
    assert [e.pid for e in got] == [42, 42 + rec.LIFE]
    assert [got.life(42, at) for at in (0, 1, 19, 20, 99)] == [42] * 3 + [42 + rec.LIFE] * 2 and got.life(7, 9) == 7
    history = History({}, [], got, [Fault("kill", 42, 30, 31, 31), Fault("kill", 42, 10, 11, 11)], lease=1, batch=1)
    assert {pid: f.at for pid, f in history.kills.items()} == {42: 10, 42 + rec.LIFE: 30}


def test_a_torn_event_is_none(tmp_path):
    whole = rec.pack(1, 5, "n/1", rec.TAKEN, 1)
    write(tmp_path, [rec.pack(0, 5, "n/1", rec.TAKEN, 1)[:-8] + bytes(8), whole])
    got = rec.read(tmp_path)
    assert len(got) == 1 and got.torn == 1


def test_a_file_that_is_no_record(tmp_path):
    path = write(tmp_path, [rec.pack(0, 5, "n/1", rec.TAKEN, 1)], magic=1)
    with pytest.raises(BadRecord, match="is no record"):
        rec.read(tmp_path)
    os.remove(path)
    path = write(tmp_path, [rec.pack(1, 5, "n/1", rec.TAKEN, 1)])
    with pytest.raises(BadRecord, match="event 0 of process 42 is no event"):
        rec.read(tmp_path)
    os.remove(path)
    write(tmp_path, [rec.pack(0, 5, "n/1", rec.TAKEN, 1)], begun=20)
    with pytest.raises(BadRecord, match="ends before its last event"):
        rec.read(tmp_path)


def test_a_process_that_has_not_begun(tmp_path):
    for data in (b"", bytes(rec.SLOT * 2)):
        (tmp_path / "42-7.rec").write_bytes(data)
        with Tail(tmp_path, 42) as tail:
            assert rec.read(tmp_path) == [] and tail.follow().in_flight() == []


def test_a_record_is_followed(tmp_path):
    tail = Tail(tmp_path, 42)
    assert tail.follow().in_flight() == []
    events = [rec.pack(0, 1, "n/1", rec.TAKEN, 7), rec.pack(1, 2, "n/1", rec.TAKEN, 8), rec.pack(2, 3, "n/1", rec.SEND, 7)]
    write(tmp_path, events)
    assert sorted(tail.follow().in_flight()) == [7, 8] and tail.in_flight(rec.SEND) == [7]
    events += [rec.pack(3, 4, "n/1", rec.SETTLED, 7), bytes(rec.SLOT), rec.pack(5, 6, "n/1", rec.SETTLED, 8)]
    with open(tmp_path / "42-7.rec", "r+b") as f:
        f.write(rec.HEAD.pack(rec.MAGIC, 42, 7, 6) + b"".join(events))
    assert tail.follow().in_flight() == [8]  # the fifth is not whole yet
    events[4] = rec.pack(4, 5, "n/1", rec.RESULT, 8)
    with open(tmp_path / "42-7.rec", "r+b") as f:
        f.write(rec.HEAD.pack(rec.MAGIC, 42, 7, 6) + b"".join(events))
    assert tail.follow().in_flight() == []
    tail.close()


def test_keys_are_hashed_as_in_c():
    assert rec.key_hash(None) == 0 and rec.key_hash("") == 0xcbf29ce484222325 and rec.key_hash("a") == 0xaf63dc4c8601ec8c
