"""bench/run works: it measures, verifies what it measured, and says so. Its speed is not judged
here, where machines are noisy and builds are slow, but for a bound that only a mistake crosses."""
import json
import os
import subprocess

import pytest

from harness import PATIENCE, ROOT

HEADLINE = "pg-transaction-1"


def bench(sluice, *args, program=None):
    return subprocess.run([os.path.join(ROOT, "bench", "run"), *args], cwd=sluice.cwd,
                          env={**sluice.env(), "SLUICE_BIN": program or sluice.bin},
                          capture_output=True, text=True, timeout=100 * PATIENCE)


def report_of(done):
    """The JSON of a run, which ends with status 1 only if it has missed what is demanded."""
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["good"] else 1), done.stderr
    return report


@pytest.fixture
def ceilings(sluice):
    """The folder of the ceiling programs that belong to the program under test."""
    folder = os.path.join(os.path.dirname(sluice.bin), "bench")
    if not os.path.exists(os.path.join(folder, "ceiling")):
        pytest.skip("there is no bench/ceiling beside the program")
    return folder


def test_headline_reports_a_verified_ratio(sluice, ceilings):
    report = report_of(bench(sluice, "--only", HEADLINE, "--rows", "20000", "--rounds", "3", "--json"))
    (result,) = report["results"]
    assert result["scenario"] == HEADLINE
    assert result["rows"] == 20000 and result["verified"]
    assert result["ceiling"]["median"] > 0 and result["sluice"]["median"] > 0
    assert result["ratio"]["median"] > 0.4
    assert result["bound"] == {"least": 0.7, "good": result["ratio"]["median"] >= 0.7}
    assert report["good"] == result["bound"]["good"]
    assert "fsync=on" in report["settings"][0]


@pytest.mark.parametrize("scenario", ["pg-lanes-1", "pg-advisory-1"])
def test_ordered_strategies_against_their_own_ceilings(sluice, ceilings, scenario):
    report = report_of(bench(sluice, "--only", scenario, "--rows", "20000", "--rounds", "1", "--json"))
    (result,) = report["results"]
    assert result["scenario"] == scenario and result["verified"]
    assert result["ratio"]["median"] > 0.1


def test_size_of_the_tables(sluice, ceilings):
    """Few messages: that it counts, and says what is demanded."""
    report = report_of(bench(sluice, "--only", "size-lanes", "--size-rows", "20000", "--json"))
    (result,) = report["results"]
    assert result["messages"] == 20000 and set(result["before"]) == set(result["after"])
    assert result["before"]["outbox"] > 10000 * 200 and result["after"]["outbox"] >= result["before"]["outbox"]
    assert 1 <= result["ratio"] < 10
    assert result["bound"] == {"most": 3, "good": result["ratio"] <= 3}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory"])
def test_cost_of_a_claim(sluice, ceilings, strategy):
    """A twentieth of the real sizes: that each state is reached, and each message sent once."""
    report = report_of(bench(sluice, "--only", f"claim-*-{strategy}", "--scale", "0.05", "--batch", "50", "--rounds", "1",
                             "--json"))
    assert [r["scenario"] for r in report["results"]] == [f"claim-{what}-{strategy}"
                                                          for what in ("backlog", "blocked", "snapshot")]
    blocked = report["results"][1]["details"][0][1]
    assert blocked["set_aside"]["messages"] == 20 + 20 * 250
    assert all(r["ratio"]["median"] > 0.1 for r in report["results"])


def test_table_of_one_scenario(sluice, ceilings):
    done = bench(sluice, "--only", "sqlite-lease-1", "--rows", "2000", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sqlite-lease-1 " in done.stdout and "ratio" in done.stdout
    assert "left the table empty" in done.stdout


def test_speed_of_one_strategy(sluice):
    done = bench(sluice, "--only", "speed-sqlite-skip-locked-lease-*-1", "--rows", "2000", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| SQLite, skip-locked-lease, null: |" in done.stdout
    assert "| SQLite, skip-locked-lease, file: |" in done.stdout


def test_unknown_scenario_is_refused(sluice):
    done = bench(sluice, "--only", "pg-lanse-1")
    assert done.returncode == 2
    assert "pg-lanse-1: no such part or scenario" in done.stderr


def test_a_run_that_leaves_messages_behind_fails(sluice, ceilings, tmp_path):
    """A program that claims to have sent all and did nothing is fast, and must not pass."""
    os.symlink(ceilings, tmp_path / "bench")
    liar = tmp_path / "sluice"
    liar.write_text(f"""#!/bin/sh
[ "$1" = init ] && exec {sluice.bin} "$@"
echo '{{"time":"2025-01-01T00:00:00.000Z","level":"info","msg":"node started"}}'
echo '{{"time":"2025-01-01T00:00:00.001Z","level":"info","msg":"workers ended","sent":"2000","retried":"0"}}'
""")
    liar.chmod(0o755)
    done = bench(sluice, "--only", "sqlite-lease-1", "--rows", "2000", "--rounds", "1", program=str(liar))
    assert done.returncode == 1
    assert "(2000, 0) messages and dead letters, not none" in done.stderr
