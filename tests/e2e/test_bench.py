"""bench/run works: it measures, verifies what it measured, and says so. Its speed is not judged
here, where machines are noisy and builds are slow, but for a bound that only a mistake crosses."""
import json
import os
import subprocess

import pytest

from harness import PATIENCE, ROOT

BENCH = os.path.join(ROOT, "bench", "run")
HEADLINE = "pg-transaction-1"


def bench(sluice, *args, env=None):
    ceiling = os.path.join(os.path.dirname(sluice.bin), "bench", "ceiling")
    if not os.path.exists(ceiling):
        pytest.skip("the build has no bench/ceiling")
    return subprocess.run([BENCH, *args], env={**sluice.env(env), "SLUICE_BIN": sluice.bin}, cwd=sluice.cwd,
                          capture_output=True, text=True, timeout=100 * PATIENCE)


def test_headline_reports_a_verified_ratio(sluice):
    done = bench(sluice, "--only", HEADLINE, "--rows", "20000", "--rounds", "1", "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    (result,) = report["results"]
    assert result["scenario"] == HEADLINE
    assert result["rows"] == 20000 and result["verified"]
    assert result["ceiling"]["median"] > 0 and result["sluice"]["median"] > 0
    assert result["ratio"]["median"] > 0.4, done.stderr
    assert done.returncode == (0 if result["ratio"]["median"] >= 0.7 else 1)
    assert "fsync=on" in report["settings"][0]


def test_table_of_sqlite(sluice):
    done = bench(sluice, "--only", "sqlite-lease-1", "--rows", "2000", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sqlite-lease-1 " in done.stdout and "ratio" in done.stdout
    assert "left the table empty" in done.stdout


def test_a_run_that_leaves_messages_behind_fails(sluice, tmp_path):
    """A program that claims to have sent all and did nothing is fast, and must not pass."""
    (tmp_path / "bench").mkdir()
    os.symlink(os.path.join(os.path.dirname(sluice.bin), "bench", "ceiling_sqlite"), tmp_path / "bench/ceiling_sqlite")
    liar = tmp_path / "sluice"
    liar.write_text(f"""#!/bin/sh
[ "$1" = init ] && exec {sluice.bin} "$@"
echo '{{"time":"2025-01-01T00:00:00.000Z","level":"info","msg":"node started"}}'
echo '{{"time":"2025-01-01T00:00:00.001Z","level":"info","msg":"workers ended","sent":"2000","retried":"0"}}'
""")
    liar.chmod(0o755)
    done = subprocess.run([BENCH, "--only", "sqlite-lease-1", "--rows", "2000", "--rounds", "1"],
                          env={**sluice.env(), "SLUICE_BIN": str(liar)}, cwd=tmp_path, capture_output=True, text=True,
                          timeout=100 * PATIENCE)
    assert done.returncode == 1
    assert "(2000, 0) messages and dead letters, not none" in done.stderr
