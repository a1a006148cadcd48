"""Nodes that die or are paused in the middle of their work: nothing is lost, and only what was in
flight is delivered twice. Every test counts what its faults really hit. Whole histories of the
strategies that keep order are in test_nemesis.py."""
import fcntl
import json
import os
import select

import pytest

from checker import check, commit, committed, read_sink
from conftest import claims_ended, end_claims, keys_held
from harness import PATIENCE, WAITS, Gate, all_stopped, is_postgres, pause_outside, query, scaled, wait_until, waiting

WORKERS = 4

# What holds a claim, and whether it outlives its owner.
CLAIMS = {
    "lease": ["--strategy", "skip-locked", "--hold", "lease"],
    "transaction": ["--strategy", "skip-locked", "--hold", "transaction"],
    "advisory": ["--strategy", "advisory"],
    "guard": ["--strategy", "guard"],
    "lanes": ["--strategy", "lanes"],
    "rotated": ["--strategy", "lanes"],  # where what was delivered may stay
}
LASTING = ("lease", "guard", "lanes", "rotated")
SHORT = f"{max(1, PATIENCE):g}s"  # a lease that is to end by itself, but not while its owner works
LONG = "10m"
AT_WORK = "state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'"  # without an event it has the processor
every_claim = pytest.mark.parametrize("claim", CLAIMS)


def init(sluice, url, claim, *more):
    if claim == "rotated" and not is_postgres(url):
        pytest.skip("layout rotated is for PostgreSQL only")
    sluice.run("init", *(["--layout", "rotated"] if claim == "rotated" else []), *more, db=url)


def ids(url, condition, *args):
    return [id for (id,) in query(url, f"SELECT id FROM outbox WHERE {condition} ORDER BY id", *args)]


def leased_to(url, node):
    """What a node's workers hold by lease, ended or not, as the table says."""
    return ids(url, "worker LIKE ? AND leased_until IS NOT NULL", f"{node}/%")


def ids_waiting(url):
    return [id for (id,) in query(url, f"SELECT o.id {WAITS.format(t='outbox')} ORDER BY o.id")] if is_postgres(url) \
        else ids(url, "true")


def is_empty(url):
    """Nothing waits."""
    return waiting(url) == 0


def sessions(url, node, condition="true"):
    return query(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = ?"
                      f" AND pid <> pg_backend_pid() AND {condition}", node)[0][0]


class Cluster:
    """One node that survives, and victims, one after another, all on one sink."""

    def __init__(self, sluice, url, hold, batch):
        self.sluice = sluice
        self.url = url
        self.hold = hold
        self.batch = batch
        self.out = os.path.join(sluice.cwd, "out.jsonl")
        self.messages = {}
        self.hits = []  # how many messages were in flight at each fault
        self.in_flight = []  # their ids
        sluice.run("init", db=url)
        self.survivor = self.start("survivor")

    def start(self, node):
        """Each node can be found by its name: in the table, and in the server's list of sessions."""
        url = f"{self.url}?application_name={node}" if is_postgres(self.url) else self.url
        p = self.sluice.start("run", "--node", node, "--sink", f"file:{self.out}", "--workers", WORKERS,
                              *CLAIMS[self.hold], "--lease", f"{2 * PATIENCE:g}s", "--batch", self.batch, "--poll", "50ms", db=url)
        p.node = node
        p.wait_log("node started")
        return p

    def kill_in_the_middle(self, kills, wave):
        """For each kill: a victim joins, a wave of messages is committed, and the victim is killed
        when it holds some of them."""
        for i in range(kills):
            victim = self.start(f"victim-{i}")
            hit = []
            while not hit:  # between two turns it holds nothing: that kill would prove nothing
                self.messages.update(commit(self.url, wave))
                hit = self.kill(victim)
                if not hit and not victim.running:
                    victim = self.start(f"victim-{i}")
            self.hits.append(len(hit))
            self.in_flight += hit

    def kill(self, victim):
        if self.hold == "lease":
            return self.kill_with_leases(victim)
        return self.kill_with_locks(victim) if is_postgres(self.url) else self.kill_with_file_lock(victim)

    def kill_with_leases(self, victim):
        """Leases outlive their holder, so they can be counted afterwards."""
        wait_until(lambda: leased_to(self.url, victim.node) or is_empty(self.url), 10, "leases of the victim")
        victim.kill9()
        if is_postgres(self.url):
            wait_until(lambda: not sessions(self.url, victim.node), 10, "the end of the victim's sessions")
        return leased_to(self.url, victim.node)

    def kill_with_locks(self, victim):
        """Locks do not: the victim is stopped and looked at, and killed if it holds some."""
        def look():
            victim.pause()
            wait_until(lambda: not sessions(self.url, victim.node, AT_WORK), 10, "an end of the victim's statements")
            locked = [id for (id,) in query(
                self.url, "SELECT o.id FROM pgrowlocks('outbox') l JOIN outbox o ON o.ctid = l.locked_row"
                          " WHERE l.pids && ARRAY(SELECT pid FROM pg_stat_activity WHERE application_name = ?)",
                victim.node)]
            if not locked:
                victim.resume()
            return locked or is_empty(self.url)
        locked = wait_until(look, 10, "locks of the victim")
        if locked is True:
            return []
        victim.kill9()
        return locked

    def kill_with_file_lock(self, victim):
        """SQLite has one writer at a time, who locks byte 120 of the -shm file; it is known that
        the victim is that one, though not how much it took: a batch at most."""
        inode = os.stat(self.url[len("sqlite:"):] + "-shm").st_ino

        def look():
            victim.pause()
            with open("/proc/locks") as f:
                held = [line.split() for line in f]
            writing = any(w[3:5] == ["WRITE", str(victim.pid)] and w[5].endswith(f":{inode}") and w[6] == "120"
                          for w in held)
            batch = ids(self.url, "true")[:self.batch] if writing else []
            if not batch:
                victim.resume()
            return batch or is_empty(self.url)
        locked = wait_until(look, 10, "the victim is writing")
        if locked is True:
            return []
        victim.kill9()
        return locked

    def finish(self, record_property):
        """Waits for the rest, checks the history, and says what happened."""
        wait_until(lambda: is_empty(self.url), 30, "everything is delivered")
        self.survivor.term()
        self.survivor.wait(status=0)
        summary = check(self.messages, read_sink(self.out), in_flight=self.in_flight, fenced=self.hold == "lease",
                        torn_max=len(self.hits), least=len(self.messages))
        text = f"{len(self.hits)} faults with {self.hits} messages in flight; {summary}"
        record_property("history", text)
        print(text)
        return summary


# -- Killed at any moment ------------------------------------------------------------------------

@pytest.mark.threads
@pytest.mark.slow
def test_ten_kills_with_leases(sluice, pgdb, record_property):
    cluster = Cluster(sluice, pgdb, "lease", 50)
    cluster.kill_in_the_middle(kills=10, wave=scaled(5000))
    summary = cluster.finish(record_property)
    assert len(cluster.hits) == 10 and min(cluster.hits) >= 1
    assert sum(cluster.hits) / 10 >= 10, f"the kills hit too little: {cluster.hits}"
    assert max(cluster.hits) <= WORKERS * 50
    assert summary.committed >= scaled(50000)
    assert summary.duplicates <= sum(cluster.hits)


@pytest.mark.threads
def test_kills_with_transactions(sluice, pgdb, record_property):
    query(pgdb, "CREATE EXTENSION pgrowlocks")
    cluster = Cluster(sluice, pgdb, "transaction", 50)
    cluster.kill_in_the_middle(kills=5, wave=scaled(2000))
    summary = cluster.finish(record_property)
    assert len(cluster.hits) == 5 and min(cluster.hits) >= 1
    assert max(cluster.hits) <= WORKERS * 50
    assert summary.committed >= scaled(10000)
    assert summary.duplicates <= sum(cluster.hits)


@pytest.mark.threads
@pytest.mark.parametrize("hold", ["lease", "transaction"])
def test_kills_on_sqlite(sluice, sqlitedb, hold, record_property):
    batch = 50 if hold == "lease" else 10
    cluster = Cluster(sluice, sqlitedb, hold, batch)
    cluster.kill_in_the_middle(kills=5, wave=scaled(1000))
    summary = cluster.finish(record_property)
    assert len(cluster.hits) == 5 and min(cluster.hits) >= 1
    assert max(cluster.hits) <= (WORKERS if hold == "lease" else 1) * batch
    assert summary.committed >= scaled(5000)
    assert summary.duplicates <= sum(cluster.hits)


# -- Killed at a known step of the turn ----------------------------------------------------------

@every_claim
@pytest.mark.parametrize("point", ["taken", "sent", "settled"])
def test_killed_at_a_fault_point(sluice, db, recorded, claim, point):
    """The first batch is 20 of 50. Only between `sent` and `settled` does a crash repeat messages,
    and then exactly the batch."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    flags = ["--sink", f"file:{out}", "--workers", 1, "--batch", 20, *CLAIMS[claim], "--lease", LONG]
    init(sluice, db, claim)
    messages = commit(db, 50)

    victim = sluice.start("run", *flags, db=db, env={**recorded.env, "SLUICE_FAULT": f"{point}:1"})
    victim.wait(status=-9)
    batch = recorded.taken(victim)
    assert len(batch) == 20
    assert [d.id for d in read_sink(out)] == ([] if point == "taken" else batch)
    assert ids_waiting(db) == sorted(messages.keys() - set(batch if point == "settled" else []))
    held = batch if point != "settled" else []
    assert ids(db, "leased_until IS NOT NULL") == (held if claim == "lease" else [])
    assert keys_held(db) == (len(held) if claim == "guard" else 0)

    if is_postgres(db):
        wait_until(lambda: not sessions(db, "sluice"), 10, "the end of the dead node's sessions")
    end_claims(db)
    sluice.run("run", *flags, "--drain", db=db)
    record = read_sink(out)
    summary = check(messages, record, in_flight=batch if point == "sent" else [], fenced=claim != "transaction", least=50)
    assert summary.duplicates == (20 if point == "sent" else 0)
    assert is_empty(db)

    again = {d.id: (d.attempt, d.epoch) for d in record if d.id in batch}
    if claim == "lease" and point != "settled":
        assert set(again.values()) == {(2, 2)}  # counted before it is made
    else:
        assert {attempt for attempt, _ in again.values()} == {1}


@every_claim
def test_killed_again_and_again(sluice, db, fault_points, claim):
    """Every start dies after its first batch was sent: nothing is lost, and all is delivered again,
    each time in order. A start that knows that another has died is careful, and begins with one message."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    flags = ["--sink", f"file:{out}", "--workers", 1, "--batch", 10, *CLAIMS[claim], "--lease", LONG]
    init(sluice, db, claim, "--lanes", 1)
    commit(db, 10)
    query(db, "UPDATE outbox SET entity_key = 'k'")
    messages = committed(db)
    for _ in range(2):
        sluice.start("run", *flags, db=db, env={"SLUICE_FAULT": "sent:1"}).wait(status=-9)
        if is_postgres(db):
            wait_until(lambda: not sessions(db, "sluice"), 10, "the end of the dead node's sessions")
        end_claims(db)
    sluice.run("run", *flags, "--drain", db=db)
    record = read_sink(out)
    summary = check(messages, record, in_flight=[*messages, *messages], fenced=claim != "transaction", least=10)
    again = summary.duplicates - 10  # the second start's; one that follows at once may not know of the death
    assert again == 1 if claim in LASTING else again in (1, 10)
    assert [d.id for d in record] == sorted(messages) + sorted(messages)[:again] + sorted(messages)
    first, others = (3, 2 if again == 1 else 3) if claim == "lease" else (2 if again == 1 else 1, 1)
    assert [d.attempt for d in record] == [1] * 10 + [2 if claim == "lease" else 1] * again + [first] + [others] * 9


@pytest.mark.parametrize("point", ["taken", "sent", "settled"])
def test_killed_when_rows_stay(sluice, pgdb, recorded, point):
    """The second batch of a table of layout rotated: nothing of it is deleted, and it is done when that was written."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    flags = ["--sink", f"file:{out}", "--workers", 1, "--batch", 20, *CLAIMS["rotated"], "--lease", LONG]
    init(sluice, pgdb, "rotated")
    messages = commit(pgdb, 100)
    victim = sluice.start("run", *flags, db=pgdb, env={**recorded.env, "SLUICE_FAULT": f"{point}:2"})
    victim.wait(status=-9)
    first, second = sorted(messages)[:20], sorted(messages)[20:40]
    assert recorded.taken(victim) == first + second
    assert ids(pgdb, "true") == sorted(messages)[20:], "the second batch stays"
    assert ids_waiting(pgdb) == sorted(messages)[40 if point == "settled" else 20:]
    end_claims(pgdb)
    sluice.run("run", *flags, "--drain", db=pgdb)
    summary = check(messages, read_sink(out), in_flight=second if point == "sent" else [], least=100)
    assert summary.duplicates == (20 if point == "sent" else 0)
    assert is_empty(pgdb)


@pytest.mark.parametrize("claim", ["lanes", "rotated"])
def test_killed_while_a_settle_is_on_its_way(sluice, pgdb, recorded, claim):
    """Its answer comes with the next batch. Whether it was written or not: that batch comes again as a whole, or not at
    all, and nothing of the next one was sent."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    # A settle is waited for after a turn whose sink took 10 ms, as one may on a busy machine: so it does not wait for the disk.
    flags = ["--sink", f"file:{out}?sync=off", "--workers", 1, "--batch", 20, *CLAIMS[claim], "--lease", LONG]
    init(sluice, pgdb, claim)
    messages = commit(pgdb, 400)
    victim = sluice.start("run", *flags, db=pgdb, env={**recorded.env, "SLUICE_FAULT": "posted:2"})
    victim.wait(status=-9)
    sent = [d.id for d in read_sink(out)]  # not always the first ones: it may not have had all lanes yet
    assert len(sent) >= 40 and sorted(sent) == recorded.taken(victim)
    first, second = sent[:-20], sent[-20:]
    wait_until(lambda: not sessions(pgdb, "sluice"), 10, "the end of the dead node's sessions")
    waits = sorted(ids_waiting(pgdb))
    written = waits == sorted(set(messages) - set(sent))
    assert written or waits == sorted(set(messages) - set(first))
    end_claims(pgdb)
    sluice.run("run", *flags, "--drain", db=pgdb)
    summary = check(messages, read_sink(out), in_flight=[] if written else second, least=400)
    assert summary.duplicates == (0 if written else 20)
    assert is_empty(pgdb)


# -- Paused for longer than its lease ------------------------------------------------------------

class TakenOver:
    """Node a takes 20 of 50 messages and stands still; then b delivers all, a wakes up, and must send none."""

    def __init__(self, sluice, url, recorded, claim, fault=""):
        self.sluice, self.url, self.claim = sluice, url, claim
        self.mine, self.theirs = os.path.join(sluice.cwd, "a.jsonl"), os.path.join(sluice.cwd, "b.jsonl")
        init(sluice, url, claim)
        self.messages = commit(url, 50)
        self.a = sluice.start("run", *CLAIMS[claim], "--node", "a", "--sink", f"file:{self.mine}", "--workers", 1,
                              "--batch", 20, "--lease", SHORT, db=url, env={**recorded.env, "SLUICE_FAULT": fault})

    def take_over(self):
        wait_until(lambda: claims_ended(self.url), 10, "the end of what it holds")
        self.sluice.run("run", *CLAIMS[self.claim], "--node", "b", "--sink", f"file:{self.theirs}", "--drain", db=self.url)
        self.a.resume()
        self.a.wait_log("turn failed, trying again")

    def judge(self):
        self.a.term()
        self.a.wait(status=0)
        record = read_sink(self.theirs)
        assert check(self.messages, record, fenced=self.claim != "transaction", least=50).duplicates == 0
        assert len(read_sink(self.mine)) == 0
        assert is_empty(self.url)


@pytest.mark.threads
@pytest.mark.parametrize("claim", LASTING)
def test_paused_before_it_sends(sluice, db, recorded, claim):
    """What was taken over meanwhile is not sent."""
    with Gate(os.path.join(sluice.cwd, "a.jsonl")):
        case = TakenOver(sluice, db, recorded, claim)
        assert len(wait_until(lambda: recorded.at_the_gate(case.a, 1), 10, "20 messages in flight")) == 20
        pause_outside(case.a, db)
        case.take_over()
    case.judge()


def stopped_between_take_and_send(sluice, url, recorded, claim):
    """Right before each send a node looks at its own deadline: it wakes up, and sends nothing."""
    case = TakenOver(sluice, url, recorded, claim, fault="taken:1:stop")
    wait_until(lambda: len(recorded.in_flight(case.a)) == 20 and all_stopped(case.a.pid), 10, "the stop")
    case.take_over()
    case.judge()


@pytest.mark.threads
@pytest.mark.parametrize("claim", LASTING)
def test_stopped_between_take_and_send(sluice, db, recorded, claim):
    stopped_between_take_and_send(sluice, db, recorded, claim)


@pytest.mark.parametrize("claim", ["transaction", "advisory"])
def test_stopped_between_take_and_send_in_a_transaction(sluice, pgdb, recorded, claim):
    """On SQLite nobody else could write meanwhile."""
    stopped_between_take_and_send(sluice, pgdb, recorded, claim)


@pytest.mark.parametrize("claim, point", [("lanes", "fenced"), ("rotated", "fenced"), ("guard", "fenced"), ("guard", "locked"), ("advisory", "locked")])
def test_stopped_in_the_middle_of_a_transaction(sluice, pgdb, recorded, claim, point):
    """It holds locks, and stands still: the others wait for them no longer than for its lease."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    flags = [*CLAIMS[claim], "--sink", f"file:{out}", "--poll", "100ms"]
    init(sluice, pgdb, claim)
    query(pgdb, "INSERT INTO outbox (topic, entity_key, payload, available_at)"
                " SELECT 't', 'later:' || i, '1', now() + interval '1 hour' FROM generate_series(1, 200) i")
    messages = commit(pgdb, 100)
    a = sluice.start("run", *flags, "--node", "a", "--workers", 1, "--batch", 20, "--lease", f"{1 + PATIENCE:g}s", db=pgdb,
                     env={**recorded.env, "SLUICE_FAULT": f"{point}:1:stop"})
    wait_until(lambda: all_stopped(a.pid), 10, "the stop")
    b = sluice.start("run", *flags, "--node", "b", db=pgdb)
    wait_until(lambda: waiting(pgdb) == 200, 15, "all that a had")
    messages.update(commit(pgdb, 100))
    wait_until(lambda: waiting(pgdb) == 200, 10, "what came later")
    a.resume()
    messages.update(commit(pgdb, 100))
    wait_until(lambda: waiting(pgdb) == 200, 15, "what came then")
    for node in a, b:
        node.term()
        node.wait(status=0)
    check(messages, read_sink(out), least=300)
    assert waiting(pgdb) == 200


def full_pipe():
    """A pipe of one page that nobody reads: (read, write)."""
    r, w = os.pipe()
    fcntl.fcntl(w, 1031, 4096)  # F_SETPIPE_SZ
    return r, w


def is_full(w):
    return not select.select([], [w], [], 0)[1]


@pytest.mark.threads
def test_paused_after_it_sent(sluice, db):
    """It sent a part, lost the lease, and wakes up believing in it: its settle, with the old epoch,
    deletes and releases nothing of what someone else holds now."""
    sluice.run("init", db=db)
    messages = commit(db, 200)
    r, w = full_pipe()
    a = sluice.start("run", *CLAIMS["lease"], "--node", "a", "--sink", "stdout:", "--workers", 1, "--batch", 200,
                     "--lease", SHORT, "--poll", "1h", db=db, stdout=w)
    wait_until(lambda: is_full(w), 10, "a full pipe")
    os.close(w)
    assert len(leased_to(db, "a")) == 200
    pause_outside(a, db)
    wait_until(lambda: claims_ended(db), 10, "the end of the leases")
    skip_locked = ["--strategy", "skip-locked"]
    taken = sluice.run("pull", *skip_locked, "--node", "b", "--batch", 1000, "--lease", "1h", db=db).stdout
    receipts = [json.loads(line)["receipt"] for line in taken.splitlines()]
    assert receipts == [f"{id}:2" for id in sorted(messages)]

    a.resume()
    a.wait_log("lease lost")
    a.term()
    a.wait(status=0)
    assert "sent=0" not in a.stderr() and "lost_leases=200" in a.stderr()
    rows = query(db, "SELECT id, epoch, attempts, worker, leased_until IS NOT NULL FROM outbox ORDER BY id")
    assert rows == [(id, 2, 2, "b", True) for id in sorted(messages)]
    sluice.run("pull", *skip_locked, "--ack", "-", db=db, input="\n".join(receipts))
    assert is_empty(db)
    os.close(r)


@pytest.mark.parametrize("claim", ["transaction", "advisory"])
def test_paused_inside_a_transaction(sluice, pg, pgdb, claim):
    """The server ends a transaction that idles longer than the lease; others go on at once."""
    out = os.path.join(sluice.cwd, "b.jsonl")
    sluice.run("init", db=pgdb)
    messages = commit(pgdb, 200)
    r, w = full_pipe()
    log = pg.log_size()
    a = sluice.start("run", *CLAIMS[claim], "--node", "a", "--sink", "stdout:", "--workers", 1, "--batch", 200, "--lease",
                     SHORT, db=f"{pgdb}?application_name=a", stdout=w)
    wait_until(lambda: is_full(w), 10, "a full pipe")
    os.close(w)
    a.pause()
    wait_until(lambda: "] a FATAL:  terminating connection due to idle-in-transaction timeout" in pg.log_text(log), 10,
               "the end of the idle session")
    sluice.run("run", *CLAIMS[claim], "--sink", f"file:{out}", "--drain", db=pgdb)
    assert check(messages, read_sink(out), least=200).duplicates == 0
    a.resume()
    a.wait_log("trying again")
    a.term()
    a.wait(status=0)
    os.close(r)
    assert is_empty(pgdb)


@pytest.mark.threads
def test_pauses_in_the_middle(sluice, pgdb, record_property):
    cluster = Cluster(sluice, pgdb, "lease", 50)
    victim = cluster.start("victim-0")
    for _ in range(2):
        held = []
        while not held:
            cluster.messages.update(commit(pgdb, scaled(2000)))
            wait_until(lambda: leased_to(pgdb, victim.node) or is_empty(pgdb), 10, "leases of the victim")
            victim.pause()
            wait_until(lambda: not sessions(pgdb, victim.node, AT_WORK), 10, "an end of the victim's statements")
            held = leased_to(pgdb, victim.node)
            if not held:
                victim.resume()
        wait_until(lambda: not ids(pgdb, "worker LIKE 'victim%' AND leased_until > clock_timestamp()"), 10,
                   "the end of its leases")
        victim.resume()
        cluster.hits.append(len(held))
        cluster.in_flight += held
    summary = cluster.finish(record_property)
    assert len(cluster.hits) == 2 and min(cluster.hits) >= 1
    assert summary.duplicates <= sum(cluster.hits)
    assert victim.running
