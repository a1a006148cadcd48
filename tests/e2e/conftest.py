"""Fixtures of the end-to-end tests. See tests/support/harness.py for what `sluice` can do."""
import signal

import pytest

from harness import PATIENCE, Sluice
from servers import Postgres

LIMIT_SECONDS = 120  # for one test
SERVERS = pytest.StashKey()  # of the whole run
LOGS = pytest.StashKey()  # of one test: (server, where its log ended before)


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


@pytest.fixture
def sqlitedb(tmp_path):
    """The URL of a SQLite database that does not exist yet."""
    return f"sqlite:{tmp_path}/outbox.db"


@pytest.fixture(params=["postgres", "sqlite"])
def db(request):
    """The URL of a fresh database, of each kind in turn."""
    return request.getfixturevalue("pgdb" if request.param == "postgres" else "sqlitedb")


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
    servers = {v for v in item.funcargs.values() if isinstance(v, Postgres)}
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
        report.sections.append((f"PostgreSQL log, port {server.port}", server.log_text(since)[-20000:]))
    helper = item.funcargs.get("sluice")
    for p in helper.processes if helper else []:
        report.sections.append((f"process {p.pid}, status {p.returncode}", str(p)))
