"""What happens when delivery fails: policies, outages, messages that end the program. The sink is
tests/programs/flaky.c, which does as each message says; nodes are killed in the middle of their work."""
import collections
import os
import random

import pytest

from checker import check, committed, read_sink
from harness import PATIENCE, Sluice, is_postgres, query, scaled, wait_until

KEYS = 60
MAX_ATTEMPTS = 12  # a kill in a careful turn costs one of them, and no failure takes more than 3
HOPELESS = 10
KILLS = 6


class Flaky:
    """Nodes of the test program, all on one file."""

    def __init__(self, sluice, url, **settings):
        self.helper = Sluice(sluice.cwd)
        self.helper.bin = os.path.join(os.path.dirname(sluice.bin), "tests", "flaky")
        assert os.path.exists(self.helper.bin), f"{self.helper.bin} was not built"
        self.url, self.out = url, os.path.join(sluice.cwd, "flaky.jsonl")
        self.settings = {"retry_base": "5ms", "retry_max": "40ms", "poll": "20ms", "lease": "60s",
                         "max_attempts": MAX_ATTEMPTS, "workers": 2, "batch": 50, **settings}
        self.nodes = 0

    def words(self, **more):
        settings = {**self.settings, **more}
        return [self.out, f"db={self.url}", *(f"{name}={value}" for name, value in settings.items())]

    def start(self, **more):
        self.nodes += 1
        return self.helper.start(*self.words(node=f"n{self.nodes}", **more))

    def heal(self):
        open(self.out + ".healed", "w").close()

    def record(self):
        return read_sink(self.out)

    def close(self):
        self.helper.close()
        self.helper.assert_no_reports()


@pytest.fixture
def flaky(sluice):
    made = []

    def make(url, **settings):
        made.append(Flaky(sluice, url, **settings))
        sluice.run("init", db=url)
        return made[-1]
    yield make
    for f in made:
        f.close()


def push(sluice, url, payloads):
    """(key, payload) pairs; returns the messages by id."""
    lines = "".join('{"topic":"t","key":"%s","payload":%s}\n' % pair for pair in payloads)
    sluice.run("push", "--lines", "-", input=lines, db=url)
    return committed(url)


def count(url, what="outbox", condition="true"):
    return query(url, f"SELECT count(*) FROM {what} WHERE {condition}")[0][0]


def soon(condition, timeout, what, url):
    """wait_until, and what is left if it was in vain."""
    try:
        wait_until(condition, timeout, what)
    except AssertionError as e:
        left = query(url, "SELECT id, entity_key, attempts, held, available_at, last_error FROM outbox ORDER BY id LIMIT 20")
        keys = query(url, "SELECT entity_key, head, due_at, reason FROM outbox_keys LIMIT 20")
        claims = query(url, "SELECT * FROM outbox_claims LIMIT 20")
        raise AssertionError(f"{e}; {count(url)} are left, {count(url, 'outbox_dead')} are dead:\n{left}\n{keys}\n{claims}") from None


def in_order(record, repeated=False):
    """Of each key the ids rise; or fall back only to one that was delivered before."""
    last, seen = collections.defaultdict(int), set()
    for d in record:
        assert d.id > last[d.key] or (repeated and d.id in seen), f"line {d.line}: {d.id} of {d.key} after {last[d.key]}"
        last[d.key] = max(last[d.key], d.id)
        seen.add(d.id)


INFINITY = {True: "'infinity'", False: "'9999-12-31 23:59:59.999'"}


class Faults:
    """5 % of the messages fail up to three times, some for ever; nodes are killed meanwhile."""

    def __init__(self, sluice, url, flaky, policy, strategy):
        self.sluice, self.url, self.policy = sluice, url, policy
        self.n = scaled(1500, 400)
        rng = random.Random(f"{policy}/{strategy}")
        self.hopeless = sorted(rng.sample(range(KEYS, self.n // 2), HOPELESS * 3))
        keys, chosen = set(), []
        for i in self.hopeless:  # one of a key, so that all of them can come up
            if i % KEYS not in keys and len(chosen) < HOPELESS:
                keys.add(i % KEYS)
                chosen.append(i)
        self.hopeless = chosen
        payloads = [(f"k{i % KEYS}", '{"n":%d,"fail":%d}' % (i, -1 if i in chosen else rng.randint(1, 3))
                     if i in chosen or rng.random() < 0.05 else '{"n":%d}' % i) for i in range(self.n)]
        self.flaky = flaky(url, strategy=strategy, on_failure=policy, lease=f"{round(1000 * max(1, PATIENCE * 2 / 3))}ms")
        self.messages = push(sluice, url, payloads)
        ids = sorted(self.messages)
        self.hopeless_ids = [ids[i] for i in chosen]
        # Behind each that is hopeless, its key waits, unless it is skipped.
        self.waiting = {ids[i] for i in range(self.n) for j in chosen if i % KEYS == j % KEYS and i >= j}
        self.kills = 0

    def run_under_kills(self):
        keep = self.flaky.start()
        victim = self.flaky.start()
        while self.kills < KILLS:
            before = len(self.flaky.record()) if os.path.exists(self.flaky.out) else 0
            goal = min(before + 40, self.n - len(self.waiting) - 200)
            wait_until(lambda: os.path.exists(self.flaky.out) and len(self.flaky.record()) >= goal, 20, "progress")
            victim.kill9()
            self.kills += 1
            victim = self.flaky.start()
        self.nodes = [keep, victim]

    def at_rest(self):
        """All that can go has gone."""
        left = {"skip": 0}.get(self.policy, len(self.waiting))
        return count(self.url) == left and (self.policy != "skip" or count(self.url, "outbox_dead") == HOPELESS)

    def stop(self):
        for node in self.nodes:
            node.term()
            node.wait(status=0)


@pytest.mark.parametrize("policy", ["block", "park", "skip"])
def test_failures_under_kills(sluice, db, flaky, ordered, policy, record_property):
    if not is_postgres(db) and ordered == "advisory" and policy != "park":
        pytest.skip("on SQLite advisory holds the file while it delivers: one policy is enough")
    faults = Faults(sluice, db, flaky, policy, ordered)
    faults.run_under_kills()
    soon(faults.at_rest, 40, "all that can go has gone", db)
    before = faults.flaky.record()
    in_order(before, repeated=True)
    assert not {d.id for d in before} & set(faults.hopeless_ids)
    if policy == "skip":
        assert sorted(query(db, "SELECT id FROM outbox_dead")) == [(id,) for id in faults.hopeless_ids]
        assert query(db, "SELECT DISTINCT last_error FROM outbox_dead") == [("not today",)]
    else:
        assert {id for (id,) in query(db, "SELECT id FROM outbox")} == faults.waiting
        wait_until(lambda: sorted(query(db, "SELECT head FROM outbox_keys")) == [(id,) for id in faults.hopeless_ids], 20,
                   "no other key waits")
    far = INFINITY[is_postgres(db)]
    if policy == "park":
        wait_until(lambda: count(db, "outbox_keys", f"due_at = {far}") == HOPELESS, 20, "all are parked")
        assert query(db, f"SELECT id FROM outbox WHERE available_at = {far} ORDER BY id") == [(id,) for id in faults.hopeless_ids]
    if policy == "block":
        assert count(db, "outbox_keys", f"due_at = {far}") == 0
    faults.flaky.heal()
    if policy == "skip":
        sluice.run("dead", "resend", "--all", "--yes", db=db)
    if policy == "park":
        sluice.run("keys", "resume", "--all", "--yes", db=db)
    soon(lambda: count(db) == 0, 40, "all is delivered", db)
    faults.stop()
    record = faults.flaky.record()
    if policy != "skip":
        in_order(record, repeated=True)
        summary = check(faults.messages, record, duplicates_max=KILLS * 2 * 50, in_flight=[*faults.messages] * KILLS,
                        torn_max=KILLS, least=faults.n)
    else:  # the resent ones have come once more, behind the others of their key
        resent = [d for d in record if d.id not in faults.messages]
        assert len(resent) == HOPELESS
        record[:] = [d for d in record if d.id in faults.messages]
        summary = check(faults.messages, record, dead=faults.hopeless_ids, duplicates_max=KILLS * 2 * 50,
                        in_flight=[*faults.messages] * KILLS, torn_max=KILLS, least=faults.n - HOPELESS)
    attempts = collections.Counter(d.attempt for d in record)
    assert len(attempts) >= 3, f"too few failures to prove anything: {attempts}"
    text = f"{faults.kills} kills, {HOPELESS} hopeless, attempts {dict(attempts)}; {summary}"
    record_property("history", text)
    print(text)


def test_to_block_is_to_keep_trying(sluice, db, flaky, strategy):
    """Also when max_attempts are long used up."""
    f = flaky(db, strategy=strategy, on_failure="block", max_attempts=2)
    push(sluice, db, [("k", '{"n":1,"fail":5}'), ("k", '{"n":2}')])
    node = f.start()
    soon(lambda: count(db) == 0, 20, "delivery", db)
    node.term()
    node.wait(status=0)
    assert sorted(d.attempt for d in f.record()) == [1, 6]


# -- A message that ends the program --------------------------------------------------------------

@pytest.mark.parametrize("policy", ["park", "skip"])
@pytest.mark.parametrize("how", ["lanes", "guard", "advisory", "lease", "transaction"])
def test_a_message_that_ends_the_program(sluice, db, flaky, how, policy):
    """It runs out of attempts, since they are counted before they are made, and takes no other with it."""
    strategy = {"lease": "skip-locked", "transaction": "skip-locked"}.get(how, how)
    f = flaky(db, strategy=strategy, on_failure=policy, max_attempts=3, lease="1s",
              **({"hold": how} if strategy == "skip-locked" else {}))
    push(sluice, db, [(f"k{i % 7}", '{"n":%d%s}' % (i, ',"kill":1' if i == 25 else "")) for i in range(60)])
    [(poison,)] = query(db, "SELECT id FROM outbox ORDER BY id LIMIT 1 OFFSET 25")
    ends = 0
    behind = [i for i in range(60) if i % 7 == 25 % 7 and i >= 25] if strategy != "skip-locked" else [25]
    left = len(behind) if policy == "park" else 0
    node = f.start()

    def settled():
        nonlocal node, ends
        if not node.running:
            assert node.returncode == -9
            ends += 1
            assert ends < 40, "it never runs out of attempts"
            node = f.start()
        given_up = count(db, "outbox", f"available_at = {far}") if policy == "park" else count(db, "outbox_dead")
        return count(db) == left and given_up == 1
    far = INFINITY[is_postgres(db)]
    soon(settled, 100 if PATIENCE < 3 else 60, "it has run out of attempts", db)
    assert ends >= 3, "attempts were lost: too few ends"
    if policy == "park":
        assert query(db, f"SELECT id FROM outbox WHERE available_at = {far}") == [(poison,)]
    else:
        assert query(db, "SELECT id FROM outbox_dead") == [(poison,)]
    delivered = {d.id for d in f.record()}
    assert poison not in delivered and len(delivered) == 60 - max(left, 1)
    node.term()
    node.wait(status=0)


# -- An outage -------------------------------------------------------------------------------------

def test_an_outage(sluice, db, flaky, strategy):
    """Nobody's attempts are used up, however long it lasts; and it is probed gently."""
    f = flaky(db, strategy=strategy, on_failure="skip", max_attempts=1, workers=4, batch=10)
    messages = push(sluice, db, [(f"k{i % 7}", '{"n":%d,"down":1}' % i) for i in range(200)])
    node = f.start()
    wait_until(lambda: "sink is down" in node.stderr(), 10, "the outage is noticed")
    wait_until(lambda: count(db, "outbox", "attempts > 0") == 0, 10, "nothing is counted")
    assert node.stderr().count("sink is down") == 1 and count(db) == 200 and count(db, "outbox_dead") == 0
    f.heal()
    wait_until(lambda: count(db) == 0, 40, "delivery")
    assert "sink is up again" in node.stderr()
    node.term()
    node.wait(status=0)
    assert check(messages, f.record(), least=200).duplicates == 0
    assert {d.attempt for d in f.record()} == {1}
