"""`make demo`, without a terminal and shortened: does the story it tells add up?"""
import os
import re
import signal
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, wait_until

SECONDS = 8 if PATIENCE < 3 else 20  # what is to happen in a third of it takes longer in a slow build
FIGURES = ("pushed", "delivered", "lost", "duplicates", "order violations", "latency p50", "latency p99")


@pytest.fixture
def demo(sluice, tmp_path):
    """Starts the demo in a temporary folder of its own; it never outlives the test."""
    started = []

    def start(**env):
        folder = tmp_path / "tmp"
        folder.mkdir()
        env = sluice.env({"SLUICE_BIN": sluice.bin, "TMPDIR": str(folder), "DEMO_SECONDS": str(SECONDS), **env})
        p = subprocess.Popen([sys.executable, os.path.join(ROOT, "demo", "demo")], env=env, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(p)
        return p

    yield start
    for p in started:
        p.kill()  # its children die with it
        p.communicate()


def finish(p, status=0, timeout=60):
    out, err = p.communicate(timeout=timeout * PATIENCE)
    assert p.returncode == status, f"status {p.returncode}, not {status}\n{out}\n{err}"
    return out, err


def figures(out):
    """The summary's numbers, by name."""
    found = {}
    for name in (*FIGURES, "waiting"):
        m = re.search(rf"^  {name} +(\d+)", out, re.M)
        if m:
            found[name] = int(m.group(1))
    assert set(FIGURES) <= set(found), out
    return found


def assert_clean(tmp_path):
    assert os.listdir(tmp_path / "tmp") == []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read()
        except OSError:  # gone meanwhile, or not ours
            continue
        assert os.fsencode(f"TMPDIR={tmp_path}/tmp") not in env, f"process {pid} was left behind"


def assert_kill_is_accounted_for(out):
    text = " ".join(out.split())  # lines may break anywhere
    kill = re.search(r"it had (\d+) messages? in its lanes, (\d+) of them delivered but not yet settled, (\d+) not yet"
                     " delivered", text)
    held, unsettled, undelivered = map(int, kill.groups())
    assert held == unsettled + undelivered > 0
    # What the dead node had delivered and not settled comes a second time: all of it.
    again = re.search(r"arrived a second time, (\d+) because of the kill", text)
    assert unsettled == (int(again.group(1)) if again else 0) <= figures(out)["duplicates"]
    assert "delivered all of them" in text
    assert "keeps the order of each key" in text


@pytest.mark.slow
def test_demo_loses_nothing_and_its_summary_adds_up(demo, tmp_path):
    out, err = finish(demo())
    got = figures(out)
    assert got["pushed"] == got["delivered"] > 100
    assert got["lost"] == 0 and got["order violations"] == 0
    assert "waiting" not in got
    for event in ("node B is killed", "the lease has ended", "node B is started again", "the outbox is empty"):
        assert event in out
    assert_kill_is_accounted_for(out)
    assert "\x1b" not in out, "no terminal, no control characters"
    assert err == ""
    assert_clean(tmp_path)


@pytest.mark.slow
def test_demo_notices_lost_messages(demo, sluice, tmp_path):
    program = tmp_path / "loses-everything"
    program.write_text("#!/bin/sh\n"
                       'for a; do shift; case $a in file:*) a=null: ;; esac; set -- "$@" "$a"; done\n'
                       f'exec "{sluice.bin}" "$@"\n')
    program.chmod(0o755)
    out, _ = finish(demo(SLUICE_BIN=str(program), DEMO_SECONDS="6"), status=1)
    got = figures(out)
    assert got["pushed"] == got["lost"] > 100
    assert got["delivered"] == 0
    assert f"FAILED: {got['lost']} messages lost, such as order 1 of customer:" in out
    assert_clean(tmp_path)


@pytest.mark.slow
def test_demo_stops_on_ctrl_c_with_the_summary_so_far(demo, tmp_path):
    p = demo(DEMO_SECONDS="600")
    lines = []

    def flowing():
        lines.append(p.stdout.readline())
        return re.search(r"pushed [1-9]", lines[-1])

    wait_until(flowing, timeout=30, what="a progress line")
    p.send_signal(signal.SIGINT)
    out, _ = finish(p)
    got = figures(out)
    assert got["pushed"] == got["delivered"] + got.get("waiting", 0) > 0
    assert "interrupted" in out
    assert_clean(tmp_path)


def test_demo_says_what_is_wrong_with_its_settings(demo, tmp_path):
    _, err = finish(demo(DEMO_SECONDS="soon"), status=2)
    assert "DEMO_SECONDS is 'soon'" in err
    assert_clean(tmp_path)


def test_demo_needs_a_program(demo, tmp_path):
    _, err = finish(demo(SLUICE_BIN=str(tmp_path / "nothing")), status=2)
    assert "there is no program" in err


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false"])
def test_demo_reports_a_program_that_does_not_work(demo, tmp_path, program):
    _, err = finish(demo(SLUICE_BIN=program), status=1)
    assert "FAILED" in err and "ended" in err
    assert_clean(tmp_path)
