"""Fixtures of the end-to-end tests. See tests/support/harness.py for what `sluice` can do."""
import os
import signal

import pytest

import record
from harness import PATIENCE, Sluice, is_postgres, query
from kafka import Kafka, MockKafka, Unreachable, shared_kafka
from kafkaclient import Client
from servers import Postgres

LIMIT_SECONDS = 120  # for one test
STRATEGIES = ["skip-locked", "advisory", "guard", "lanes"]
SERVERS = pytest.StashKey()  # of the whole run
LOGS = pytest.StashKey()  # of one test: (server, where its log ended before)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The slow ones come first, so that none is left alone at the end: each worker begins with a chunk of its own, a
    quarter of its share (pytest-xdist)."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = iter([item for item in items if not item.get_closest_marker("slow")])
    room = len(items) // workers // 4
    chunks = [slow[worker::workers] for worker in range(workers)]
    if workers > 1 and all(len(chunk) <= room for chunk in chunks):
        for chunk in chunks:
            chunk += [next(quick) for _ in range(room - len(chunk))]
        items[:] = [*sum(chunks, []), *quick]


@pytest.fixture(scope="session")
def pg(pytestconfig):
    """A PostgreSQL server for the whole run: do not stop it, take `own_pg` for that."""
    with Postgres() as server:
        pytestconfig.stash[SERVERS] = [server]
        yield server


@pytest.fixture
def own_pg():
    """A PostgreSQL server that a test may stop, kill and restart. fsync is on."""
    with Postgres(fsync=True) as server:
        yield server


@pytest.fixture
def pgdb(pg):
    """The URL of a fresh PostgreSQL database."""
    url = pg.new_database()
    yield url
    pg.drop_database(url)


@pytest.fixture(scope="session")
def kafka():
    """A Kafka broker, or librdkafka's mock cluster, for the whole run: create topics of your own by new_topic(),
    and do not stop it. Its listeners are those of tests/support/kafkaclient.py."""
    with shared_kafka() as cluster:
        yield cluster


@pytest.fixture
def real_kafka(kafka):
    """The same for what the mock cannot do: deletion, settings, more partitions, TLS, SASL, transactions."""
    if not kafka.real:
        pytest.skip(kafka.why)
    return kafka


@pytest.fixture
def own_kafka():
    """A Kafka broker that a test may stop, kill and restart."""
    try:
        cluster = Kafka()
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")
    with cluster:
        yield cluster


@pytest.fixture
def mock_kafka():
    """librdkafka's mock cluster, for errors on command."""
    with MockKafka() as cluster:
        yield cluster


@pytest.fixture
def sqlitedb(tmp_path):
    """The URL of a SQLite database that does not exist yet."""
    return f"sqlite:{tmp_path}/outbox.db"


@pytest.fixture
def litebox(sqlitedb, sluice):
    """The same with an outbox in it, for what has nothing to do with the database."""
    sluice.run("init", db=sqlitedb)
    return sqlitedb


@pytest.fixture(params=["postgres", "sqlite"])
def db(request):
    """The URL of a fresh database, of each kind in turn."""
    return request.getfixturevalue("pgdb" if request.param == "postgres" else "sqlitedb")


@pytest.fixture
def box(sluice, db):
    """The same with an empty outbox in it."""
    sluice.run("init", db=db)
    return db


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    """Each way to share the table, in turn."""
    return request.param


@pytest.fixture(params=STRATEGIES[1:])
def ordered(request):
    """Each that keeps the order of a key."""
    return request.param


@pytest.fixture
def sluice(tmp_path):
    """The program under test; fails the test if a sanitizer or valgrind complained."""
    s = Sluice(tmp_path)
    yield s
    s.close()
    s.assert_no_reports()


@pytest.fixture
def fault_points(sluice):
    """For tests that set SLUICE_FAULT: the program must have been built with -Dfault_points=true,
    as tests/run-all does."""
    with open(sluice.bin, "rb") as f:
        if b"SLUICE_FAULT" not in f.read():
            pytest.skip("the program was built without -Dfault_points=true")


class Recorded:
    """What processes that are started with `env` have in their hands (tests/support/record.py)."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.env = {"SLUICE_RECORD": self.folder}

    def in_flight(self, process):
        """Ids of what it took and has not settled."""
        with record.Tail(self.folder, process.pid) as tail:
            return sorted(tail.follow().in_flight())

    def at_the_gate(self, process, workers):
        """Ids of what its workers wait to send; None until so many of them do."""
        with record.Tail(self.folder, process.pid) as tail:
            tail.follow()
        sending = all(e.kind == record.SEND for e in tail.open.values())
        if len({worker for worker, _ in tail.open}) != workers or not sending:
            return None
        return sorted(tail.in_flight())

    def taken(self, process):
        """Ids of all that it ever took."""
        return sorted({e.id for e in record.read(self.folder) if e.pid == process.pid and e.kind == record.TAKEN})


@pytest.fixture
def recorded(fault_points, tmp_path):
    folder = tmp_path / "record"
    folder.mkdir()
    return Recorded(folder)


def keys_held(url):
    """How many keys are leased, by strategy guard."""
    return query(url, "SELECT coalesce(sum(cardinality(keys)), 0) FROM outbox_claims" if is_postgres(url)
                 else "SELECT count(*) FROM outbox_claims")[0][0]


def claims_ended(url):
    """Is everything free that a dead process held: messages, keys, lanes?"""
    now = "clock_timestamp()" if is_postgres(url) else "strftime('%Y-%m-%d %H:%M:%f', 'now')"
    return query(url, f"SELECT (SELECT count(*) FROM outbox WHERE leased_until > {now})"
                      f" + (SELECT count(*) FROM outbox_claims WHERE ends_at > {now})"
                      f" + (SELECT count(*) FROM outbox_nodes WHERE lives_until > {now})") == [(0,)]


def end_claims(url):
    """As if the leases of a dead process were over: a test that needs no clock gives it a long one, which no
    slow machine can let end too early, and does not wait for it."""
    past = "clock_timestamp() - interval '1 second'" if is_postgres(url) else "'2000-01-01 00:00:00.000'"
    query(url, f"UPDATE outbox SET leased_until = {past} WHERE leased_until IS NOT NULL")
    query(url, f"UPDATE outbox_claims SET ends_at = {past}")
    query(url, f"UPDATE outbox_nodes SET lives_until = {past}")
    assert claims_ended(url)


def assert_in_order(deliveries):
    """Of each key: runs of consecutive messages, of which none begins later than one behind the end
    of what was delivered before: `1 2 3 2 3 4` is fine, `1 3 2` is not."""
    keys = {}
    for d in deliveries:
        if d.key is not None:
            keys.setdefault(d.key, []).append(d.id)
    for key, got in keys.items():
        every = sorted(set(got))
        rank = {id: i for i, id in enumerate(every)}
        end = -1  # the highest so far
        last = -1
        for id in got:
            assert rank[id] == last + 1 or rank[id] <= end, f"key {key}: {id} too early in {got}"
            last, end = rank[id], max(end, rank[id])


@pytest.fixture(autouse=True)
def time_limit(request):
    """A test that hangs fails, with a stack, instead of holding up the run."""
    seconds = int(LIMIT_SECONDS * PATIENCE)

    def too_long(*_):
        raise TimeoutError(f"{request.node.nodeid} took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Remembers where each server's log was, for the report of a failure."""
    servers = {v for v in item.funcargs.values() if isinstance(v, (Postgres, Client))}
    if "pg" in item.fixturenames or "db" in item.fixturenames:
        servers.update(item.config.stash.get(SERVERS, []))
    item.stash[LOGS] = [(s, s.log_size()) for s in servers]
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows what the servers logged meanwhile, and the logs of every process."""
    report = (yield).get_result()
    if report.when != "call" or not report.failed:
        return
    for server, since in item.stash.get(LOGS, []):
        report.sections.append((f"log of {server}", server.log_text(since)[-20000:]))
    helper = item.funcargs.get("sluice")
    for p in helper.processes if helper else []:
        report.sections.append((f"process {p.pid}, status {p.returncode}", str(p)))
