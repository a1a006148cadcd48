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


@pytest.fixture
def ceilings(sluice):
    """The folder of the ceiling programs that belong to the program under test."""
    folder = os.path.join(os.path.dirname(sluice.bin), "bench")
    if not os.path.exists(os.path.join(folder, "ceiling")):
        pytest.skip("there is no bench/ceiling beside the program")
    return folder


def test_headline_reports_a_verified_ratio(sluice, ceilings):
    done = bench(sluice, "--only", HEADLINE, "--rows", "20000", "--rounds", "3", "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    (result,) = report["results"]
    assert result["scenario"] == HEADLINE
    assert result["rows"] == 20000 and result["verified"]
    assert result["ceiling"]["median"] > 0 and result["sluice"]["median"] > 0
    assert result["ratio"]["median"] > 0.4, done.stderr
    assert done.returncode == (0 if result["ratio"]["median"] >= 0.7 else 1)
    assert "fsync=on" in report["settings"][0]


def test_table_of_one_scenario(sluice, ceilings):
    done = bench(sluice, "--only", "sqlite-lease-1", "--rows", "2000", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sqlite-lease-1 " in done.stdout and "ratio" in done.stdout
    assert "left the table empty" in done.stdout


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
