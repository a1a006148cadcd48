"""The harness under test: would it notice?"""
import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import time

import psycopg2
import pytest

from harness import ROOT, Sluice, query, wait_until
from servers import OldServer, PortLock, Postgres, SilentServer

WITH_SERVERS = os.path.join(ROOT, "tests", "support", "with-servers")


@pytest.fixture(scope="module")
def run_all():
    loader = importlib.machinery.SourceFileLoader("run_all", os.path.join(ROOT, "tests", "run-all"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_all", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A Sluice whose program is a shell."""
    monkeypatch.setenv("SLUICE_BIN", "/bin/sh")
    s = Sluice(tmp_path)
    yield s
    s.close()


def test_postgres_survives_a_crash_and_leaves_nothing():
    with Postgres() as pg:
        url = pg.new_database()
        query(url, "CREATE TABLE t (a int)")
        query(url, "INSERT INTO t VALUES (?)", 42)
        pid, session = pg.pid, psycopg2.connect(url)
        pg.kill()
        with pytest.raises(psycopg2.OperationalError):
            session.cursor().execute("SELECT 1")
        session.close()
        pg.start()
        assert pg.pid != pid
        assert query(url, "SELECT a FROM t") == [(42,)]
        assert "not properly shut down" in pg.log_text()
        pg.restart("immediate")
        pg.settings["max_connections"] = 7
        pg.restart()
        assert pg.sql("SHOW max_connections") == "7"
    assert not os.path.exists(pg.dir)
    assert not os.path.exists(f"/proc/{pg.pid}")


def test_standby_follows_and_takes_over():
    with Postgres() as pg:
        standby = pg.standby()
        pg.sql("CREATE TABLE t AS SELECT 1 AS a")
        wait_until(lambda: standby.sql("SELECT to_regclass('t') IS NOT NULL") == "t", 10, "the table arrives")
        pg.kill()
        standby.promote()
        assert standby.sql("SELECT pg_is_in_recovery()") == "f"


def test_two_servers_never_share_a_port():
    locks = [PortLock() for _ in range(20)]
    assert len({lock.port for lock in locks}) == 20
    assert max(lock.port for lock in locks) < 32768
    for lock in locks:
        lock.release()


def test_old_server_names_its_version_and_refuses_statements():
    with OldServer() as server:
        conn = psycopg2.connect(server.url())
        assert conn.server_version == 120003
        conn.autocommit = True
        for _ in range(2):
            with pytest.raises(psycopg2.errors.SyntaxError):
                conn.cursor().execute("SELECT  1")
        assert server.asked == ["SELECT 1", "SELECT 1"]
        conn.close()


def test_a_port_is_not_taken_again_at_once():
    first = PortLock()
    first.release()
    again = PortLock()
    again.release()
    assert again.port != first.port


def test_silent_server_says_nothing():
    with SilentServer() as server:
        with pytest.raises(psycopg2.OperationalError, match="timeout"):
            psycopg2.connect(server.url() + "?connect_timeout=2")
        assert server.connections == 1


def test_with_servers_passes_status_and_url_on():
    done = subprocess.run([WITH_SERVERS, "pg", "--", "sh", "-c", "echo $SL_TEST_PG; exit 77"],
                          capture_output=True, text=True)
    assert done.returncode == 77
    assert done.stdout.startswith("postgresql://")
    assert subprocess.run([WITH_SERVERS, "--", "sh", "-c", "kill -9 $$"]).returncode == 128 + 9


def test_a_killed_run_takes_its_server_with_it():
    run = subprocess.Popen([WITH_SERVERS, "pg", "--", "sh", "-c", "echo $SL_TEST_PG; exec sleep 100"],
                           stdout=subprocess.PIPE, text=True)
    url = run.stdout.readline().strip()
    folder = query(url, "SHOW data_directory")[0][0]
    child = int(subprocess.run(["sh", "-c", f"cat /proc/{run.pid}/task/*/children"], text=True,
                               capture_output=True).stdout.split()[-1])
    run.kill()
    run.wait()
    run.stdout.close()
    os.kill(child, signal.SIGKILL)

    def refused():
        try:
            psycopg2.connect(url).close()
        except psycopg2.OperationalError:
            return True
    wait_until(refused, 10, "the server is gone")
    assert os.path.exists(folder)
    Postgres().close()  # the next run removes what was left
    assert not os.path.exists(folder)


def test_wrong_status_is_noticed_and_shown(shell):
    shell.run("-c", "exit 3", check=3)
    shell.run("-c", "exit 3", check=False)
    with pytest.raises(AssertionError, match="status 3, not 0(.|\n)*said this"):
        shell.run("-c", "echo said this >&2; exit 3")


def test_environment_is_clean(shell, monkeypatch):
    for name in ("SLUICE_DB", "PGHOST", "DATABASE_URL"):
        monkeypatch.setenv(name, "x")
    out = shell.run("-c", "env").stdout
    assert "SLUICE" not in out and "PGHOST" not in out and "DATABASE_URL" not in out


def test_processes_are_watched_and_reaped(shell):
    p = shell.start("-c", "echo ready >&2; trap 'exit 7' TERM; while :; do sleep 0.01; done")
    p.wait_log("ready")
    p.term()
    assert p.wait(status=7) == 7
    stuck = shell.start("-c", "echo ready >&2; exec sleep 100")
    stuck.wait_log("ready")
    with pytest.raises(AssertionError, match="still running"):
        stuck.wait(0.1)
    assert stuck.kill9() == -9
    forgotten = shell.start("-c", "exec sleep 100")
    shell.close()
    assert not forgotten.running


@pytest.mark.parametrize("report", [
    "==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x60",
    "==12==ERROR: LeakSanitizer: detected memory leaks",
    "a.c:3:5: runtime error: signed integer overflow: 2147483647 + 1",
    "WARNING: ThreadSanitizer: data race (pid=12)",
    "==12== Invalid read of size 1",
])
def test_sanitizer_reports_are_noticed(shell, report):
    shell.run("-c", f"echo some line >&2; echo '{report}' >&2")
    with pytest.raises(AssertionError, match="a report from"):
        shell.assert_no_reports()


def test_wait_until_polls_and_gives_up():
    start = time.monotonic()
    assert wait_until(lambda: time.monotonic() > start + 0.05, 5) is True
    with pytest.raises(AssertionError, match="pigs fly"):
        wait_until(lambda: False, 0.05, "pigs fly")


CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] one
[       OK ] one
[ RUN      ] two
%s
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  %s  ] 1 test(s), listed below:
[  %s  ] two
"""


@pytest.mark.parametrize("row, verdicts", [
    ({"result": "OK", "stdout": CMOCKA % ("[       OK ] two", "X", "X")}, ["passed", "passed"]),
    ({"result": "OK", "stdout": CMOCKA % ("[  SKIPPED ] two", "SKIPPED", "SKIPPED")}, ["passed", "skipped"]),
    ({"result": "FAIL", "stdout": CMOCKA % ("[  FAILED  ] two", "FAILED", "FAILED")}, ["passed", "failed"]),
    ({"result": "FAIL", "stdout": "[ RUN      ] one\n[       OK ] one\n", "stderr": "crash"}, ["passed", "failed"]),
    ({"result": "TIMEOUT", "stdout": ""}, ["failed"]),
    ({"result": "SKIP", "stdout": "no SL_TEST_PG"}, ["skipped"]),
    ({"result": "OK", "stdout": "not cmocka at all"}, ["passed"]),
])
def test_c_test_programs_are_counted(run_all, row, verdicts):
    got = run_all.results_of_program({"name": "unit/x", "returncode": 1, **row})
    assert [r.verdict for r in got] == verdicts
    if "failed" in verdicts and row["stdout"]:
        assert row["stdout"].strip() in got[-1].text


def test_last_line_and_status(run_all):
    """Without a single test that ran, the run has failed."""
    done = subprocess.run([os.path.join(ROOT, "tests", "run-all"), "--only", "asan,nonsense"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "no such stage: nonsense" in done.stderr
    report = run_all.Report()
    report.begin("x")
    report.step("breaks", lambda: 1 / 0)
    assert report.counts()["failed"] == 1
    assert run_all.finish(report, 1, 0) == 1
    assert run_all.finish(run_all.Report(), 1, 0) == 1


def test_a_stand_in_for_a_server_is_said_at_the_end_of_all_tests(run_all, capsys):
    report = run_all.Report()
    report.begin("x")
    report.step("y", lambda: run_all.stand_ins("5 passed\nwith-servers: no Kafka broker, because\n"))
    assert report.counts() == {"skipped": 1}
    assert run_all.stand_ins("5 passed\n") == []
    run_all.finish(report, 0, 0)
    assert "skipped: x: real Kafka broker: no Kafka broker, because\n" in capsys.readouterr().out
