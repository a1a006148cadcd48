"""bench/peers, without any peer and without a network: its check notices what is wrong, its table says what was not
measured, and a peer that cannot be had is named."""
import array
import json
import os
import shutil
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
from parts.program import Wrong  # noqa: E402
from peers import compare, record  # noqa: E402
from peers.peer import Unavailable, command, installed  # noqa: E402

KEYS = 3
GOOD = [(1, 0, 1), (2, 0, 5), (3, 1, 2), (4, 1, 2), (5, 5, 6), (6, 2, 4)]  # 1 and 4, 2 and 5, 3 and 6 share a key


def changed(**by_number):
    """GOOD, with other times for some messages: m4=(0.5, 2)."""
    return [(n, *by_number.get(f"m{n}", (start, end))) for n, start, end in GOOD]


def test_a_right_record_passes():
    record.check(GOOD, 6, True, KEYS)
    record.check(GOOD[::-1], 6, True, KEYS)  # the order of the file says nothing, times do


@pytest.mark.parametrize("messages, complaint", [
    (GOOD[:-1], "1 of 6 messages were not handled, such as 6"),
    (GOOD[1:], "1 of 6 messages were not handled, such as 1"),
    ([*GOOD, GOOD[2]], "message 3 was handled twice"),
    ([*GOOD[:-1], GOOD[2]], "message 3 was handled twice"),
    ([*GOOD, (7, 8, 9)], "message 7 was handled, which is none"),
    ([*GOOD, (0, 8, 9)], "message 0 was handled, which is none"),
])
@pytest.mark.parametrize("ordered", [True, False])
def test_lost_and_doubled_messages_are_noticed(messages, complaint, ordered):
    with pytest.raises(Wrong, match=complaint):
        record.check(messages, 6, ordered, KEYS)


@pytest.mark.parametrize("messages, complaint", [
    (changed(m1=(3, 4)), "message 1 of key 1 was handled after message 4"),
    (changed(m5=(4, 6)), "messages 2 and 5 of key 2 were handled at the same time"),
    (changed(m6=(1.5, 1.8)), "messages 3 and 6 of key 0 were handled at the same time"),
])
def test_order_and_overlap_are_noticed_where_order_is_promised(messages, complaint):
    with pytest.raises(Wrong, match=complaint):
        record.check(messages, 6, True, KEYS)
    record.check(messages, 6, False, KEYS)


def test_a_record_is_read_as_it_is_written(tmp_path):
    path = tmp_path / "record"
    path.write_bytes(array.array("d", [x for m in GOOD for x in m]).tobytes())
    assert record.read(path) == GOOD
    assert record.seconds(GOOD, 0.5, 7) == 7  # the first message was earlier than the start
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(Wrong, match="multiple of three"):
        record.read(path)


def result(peer, mode, config, *rates, **more):
    return {"peer": peer, "version": "1.2", "mode": mode, "order": "o", "config": config, "rows": 1000, "rates": list(rates),
            "counts": config != "file", **more}


def judged(*others):
    own = [result("sluice", mode, config, *rates) for mode in ("ordered", "unordered")
           for config, rates in (("one", (6000, 4000)), ("two", (5000, 8000)), ("file", (99000, 99000)))]
    return compare.judge([*own, *others])


def test_ratios_are_those_of_rounds_against_the_better_of_one_and_two_workers():
    results = judged(result("graphile-worker", "ordered", "slow", 100), result("graphile-worker", "ordered", "fast", 120, 100))
    slow, fast = results[-2:]
    assert fast["ratio"] == {"median": 65, "min": 50, "max": 80}  # 6000 / 120 and 8000 / 100; the file does not count
    assert fast["bound"] == {"least": 50, "good": True}
    assert slow["ratio"]["median"] == 60 and "bound" not in slow
    assert compare.verdict(results)[0]


def test_what_is_demanded_may_be_missed():
    results = judged(result("pgq", "ordered", "c", 9000, 9000), result("pg-boss", "unordered", "c", 1000, 1000))
    assert [r["bound"]["good"] for r in results[-2:]] == [False, False]
    good, sentence = compare.verdict(results)
    assert not good and "pgq (per-key order)" in sentence and "pg-boss (no order)" in sentence
    assert "MISSED" in compare.table(results)


def test_a_failed_run_has_no_ratio_and_is_shown():
    results = judged(result("pg-boss", "unordered", "c", failed="message 3 was handled twice\nmore"))
    assert "ratio" not in results[-1]
    assert "FAILED: message 3 was handled twice |" in compare.table(results)
    assert compare.verdict(results)[0]  # it is not Sluice's fault
    own = compare.judge([result("sluice", "ordered", "one", failed="lost")])
    assert not compare.verdict(own)[0]


def test_a_peer_that_cannot_be_had_is_named():
    away = {"peer": "river", "version": "0.50.0", "mode": "ordered", "unavailable": "it needs Go 1.26, and there is none"}
    absent = {"peer": "pgq", "version": "3.5", "mode": "unordered", "order": None, "absent": "always in order"}
    results = judged(away, absent)
    table = compare.table(results)
    assert "not available: it needs Go 1.26, and there is none" in table and "river 0.50.0" in table
    assert "not measured: always in order" in table
    assert "Not available: river." in compare.verdict(results)[1]
    assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_step_that_fails_makes_a_peer_unavailable():
    with pytest.raises(Unavailable, match="npm ci failed with status 3"):
        command(["sh", "-c", "exit 3"], "npm ci")
    with pytest.raises(Unavailable, match="npm ci: No such file"):
        command(["/nonexistent/npm"], "npm ci")


def test_an_installation_is_done_once_and_again_if_its_files_change(tmp_path, monkeypatch):
    monkeypatch.setattr("peers.peer.CACHE", str(tmp_path / "cache"))
    lock, calls = tmp_path / "lock.json", []
    for content in ("one", "one", "two"):
        lock.write_text(content)
        folder = installed("x", "1", [str(lock)], calls.append)
        with open(os.path.join(folder, "lock.json"), encoding="utf-8") as f:
            assert f.read() == content
    assert len(calls) == 2

    def fails(_):
        raise Unavailable("no network")
    for _ in range(2):  # what was not finished is not taken for installed
        with pytest.raises(Unavailable):
            installed("y", "1", [str(lock)], fails)


def test_a_run_where_nothing_can_be_had(sluice, tmp_path):
    """Sluice is measured and checked; the peer is named with the reason. There is no npm on this path."""
    for name in ("stat", "git", "locale"):  # what the report and initdb call
        if shutil.which(name):
            os.symlink(shutil.which(name), tmp_path / name)
    env = {**sluice.env(), "SLUICE_BIN": sluice.bin, "PATH": str(tmp_path)}
    done = subprocess.run([os.path.join(ROOT, "bench", "peers", "run"), "--only", "pg-boss", "--rows", "500", "--keys", "50",
                           "--rounds", "1", "--json"], env=env, cwd=sluice.cwd, capture_output=True, text=True,
                          timeout=100 * PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [r["unavailable"] for r in report["results"] if r["peer"] == "pg-boss"] == ["there is no npm"]
    own = [r for r in report["results"] if r["peer"] == "sluice"]
    assert len(own) == 14 and all(r["rate"]["median"] > 0 for r in own), own
    assert report["verdict"].endswith("Not available: pg-boss.")
