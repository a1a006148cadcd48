"""`sluice bench` and bench/run work: they measure, check what was delivered, and say so. Speed is not judged here, where machines
are noisy and builds are slow. That a wrong run is noticed: tests/unit/bench/test_watched.c."""
import json
import os
import signal
import subprocess

import pytest

from harness import PATIENCE, ROOT, is_postgres, query, wait_until

FIGURES = {"name", "messages", "per_second", "compared_with", "ratio", "p50_ms", "p99_ms", "p999_ms", "statements_per_message",
           "wal_bytes_per_message", "dead_rows_per_message", "cpu_seconds_per_million", "db_cpu_seconds_per_million",
           "memory_bytes", "reached"}


def measure(sluice, db, *args):
    done = sluice.run("bench", *args, "--json", db=db, timeout=120 * PATIENCE)
    report = json.loads(done.stdout)
    assert report["scenario"] == args[0] and all(set(row) == FIGURES for row in report["rows"])
    assert report["database"].startswith("PostgreSQL 15" if is_postgres(db) else "SQLite 3")
    return report["rows"]


def nothing_is_left(db, sqlite_files):
    if is_postgres(db):
        assert query(db, "SELECT count(*) FROM pg_namespace WHERE nspname = 'sluice_bench'") == [(0,)]
    assert [f for f in sqlite_files if "-bench" in f] == []
    return True


@pytest.fixture
def clean(db, tmp_path):
    yield db
    assert nothing_is_left(db, os.listdir(tmp_path))


# -- sluice bench -----------------------------------------------------------------------------------

@pytest.mark.parametrize("way", ["lanes", "guard", "advisory", "skip-locked"])
def test_drain(sluice, clean, way):
    rows = measure(sluice, clean, "drain", "--strategy", way, "--workers", 2, "--rows", 2000, "--rounds", 1)
    names = [f"{way} by transaction, 2 workers", f"{way} by lease, 2 workers"] if way == "skip-locked" else [f"{way}, 2 workers"]
    assert [r["name"] for r in rows] == names
    for row in rows:
        assert row["messages"] == 2000 and row["per_second"] > 0 and row["compared_with"] > 0
        assert row["ratio"] == pytest.approx(row["per_second"] / row["compared_with"], rel=0.01)
        assert 0 < row["statements_per_message"] < 1 and row["memory_bytes"] > 1e6 and row["cpu_seconds_per_million"] > 0
        if is_postgres(clean):
            assert row["wal_bytes_per_message"] > 10 and row["dead_rows_per_message"] >= 1 and row["db_cpu_seconds_per_million"] >= 0


@pytest.mark.parametrize("scene", ["drain", "steady", "backlog", "snapshot"])
def test_a_rotated_table(sluice, pgdb, scene):
    """Marked instead of deleted, beside a loop that does the same; the other scenes are right on it, too."""
    flags = {"drain": ["--rows", 20000, "--rounds", 1], "steady": ["--rate", 2000, "--seconds", "2s"],
             "backlog": ["--rows", 5000], "snapshot": ["--rows", 5000]}
    rows = measure(sluice, pgdb, scene, "--layout", "rotated", "--strategy", "lanes", "--workers", 1, *flags[scene])
    assert all(row["per_second"] > 0 for row in rows)
    if scene == "drain":
        assert [row["name"] for row in rows] == ["lanes, rotated, 1 worker"] and rows[0]["compared_with"] > 0
        assert rows[0]["dead_rows_per_message"] < 0.5


def test_a_table_for_people(sluice, clean):
    done = sluice.run("bench", "drain", "--strategy", "lanes", "--workers", 1, "--rows", 1000, "--rounds", 1, db=clean)
    head, line = done.stdout.splitlines()
    assert head.split()[:5] == ["drain", "messages", "messages/s", "ceiling", "ratio"]
    assert line.split()[:4] == ["lanes,", "1", "worker", "1,000"] and len(line) == len(head)
    assert done.stderr == ""


def test_processors(sluice, litebox_url):
    """One after the other each takes a millisecond: nobody can be faster."""
    rows = measure(sluice, litebox_url, "processors", "--rows", 200, "--strategy", "lanes")
    assert len(rows) == 4 and rows[0]["per_second"] < 1000
    assert rows[3]["name"].startswith("8 workers, ")


def test_backlog(sluice, clean):
    rows = measure(sluice, clean, "backlog", "--rows", 5000)
    assert [r["name"] for r in rows] == ["500 waiting", "5000 waiting"]
    assert rows[0]["ratio"] == 1 and rows[1]["compared_with"] > 0  # the mean of those before and after it
    assert rows[1]["ratio"] == pytest.approx(rows[1]["per_second"] / rows[1]["compared_with"], rel=0.01)


@pytest.mark.parametrize("way", ["lanes", "guard", "advisory"])
def test_blocked(sluice, pgdb, way):
    rows = measure(sluice, pgdb, "blocked", "--rows", 3000, "--strategy", way)
    assert [r["name"] for r in rows] == ["nothing is blocked", "3000 behind 20 failed heads"] and rows[1]["ratio"] > 0


def test_snapshot(sluice, db):
    if is_postgres(db):
        rows = measure(sluice, db, "snapshot", "--rows", 1000)
        assert rows[1]["name"] == "a snapshot older than 5000 messages" and rows[1]["ratio"] > 0
    else:
        done = sluice.run("bench", "snapshot", db=db, check=2)
        assert "scenario snapshot is for PostgreSQL" in done.stderr


def test_hot(sluice, pgdb):
    rows = measure(sluice, pgdb, "hot", "--rows", 400)
    assert [r["messages"] for r in rows] == [400, 800] and rows[1]["compared_with"] == rows[0]["per_second"]


def test_nodes(sluice, pgdb):
    rows = measure(sluice, pgdb, "nodes", "--rows", 2000)
    assert [r["name"] for r in rows] == ["1 node", "2 nodes", "4 nodes", "8 nodes"]


def test_steady(sluice, pgdb):
    rows = measure(sluice, pgdb, "steady", "--rate", 500, "--seconds", "2s", "--wake", "notify")
    assert [r["name"] for r in rows][-1] == "500/s for 2 s, 1 producer" and len(rows) == 11
    assert [r["reached"] for r in rows] == [None] * 10 + [True]
    assert rows[-1]["messages"] == 1000 == sum(r["messages"] for r in rows[:-1])
    assert all(0 <= r["p50_ms"] <= r["p99_ms"] <= r["p999_ms"] for r in rows if r["messages"])


@pytest.mark.parametrize("way", ["lanes", "skip-locked"])
def test_steady_with_several_producers(sluice, clean, way):
    """Each key is of one of them; on SQLite they wait for each other."""
    (*_, row) = measure(sluice, clean, "steady", "--rate", 301, "--seconds", "1s", "--producers", 3, "--keys", 10, "--strategy", way)
    assert row["name"].startswith("301/s for 1 s, 3 producers") and row["messages"] == 301
    (*_, row) = measure(sluice, clean, "steady", "--rate", 20, "--seconds", "1s", "--producers", 3, "--keys", 2, "--strategy", way)
    assert row["name"].startswith("20/s for 1 s, 2 producers")  # one without a key has nothing to do


def test_steady_goes_on_below_its_rate(sluice, pgdb):
    rows = measure(sluice, pgdb, "steady", "--rate", 3000000, "--seconds", "1s", "--producers", 2)
    assert rows[-1]["name"] == "3000000/s for 1 s, 2 producers: not reached" and rows[-1]["reached"] is False
    assert 0 < rows[-1]["messages"] < 3000000 == rows[-1]["compared_with"] and rows[-1]["ratio"] < 0.99
    assert rows[-1]["messages"] == sum(r["messages"] for r in rows[:-1])


def test_steady_finds_its_rate(sluice, pgdb):
    rows = measure(sluice, pgdb, "steady", "--rows", 2000, "--seconds", "1s")
    assert rows[0]["name"] == "a drain, for its rate"
    rate = int(rows[-1]["name"].partition("/s for 1 s")[0])
    assert abs(rate - rows[0]["per_second"] / 2) <= 1


def test_the_drain_for_its_rate_has_the_usual_batches(sluice, pgdb):
    """In those of 10, a message would cost 0.2 statements at least."""
    rows = measure(sluice, pgdb, "steady", "--rows", 20000, "--seconds", "1s", "--batch", 10)
    assert rows[0]["name"] == "a drain, for its rate" and rows[0]["statements_per_message"] < 0.1


@pytest.mark.alone
@pytest.mark.slow
def test_idle(sluice, pgdb):
    (row,) = measure(sluice, pgdb, "idle", "--seconds", "2s")
    assert row["messages"] == 0 and 0 < row["statements_per_message"] < 5


# -- wrong use, and what goes wrong -----------------------------------------------------------------

@pytest.mark.parametrize("args, text", [
    ([], "which scenario?"), (["drian"], "there is no scenario 'drian'"), (["drain", "hot"], "one scenario at a time"),
    (["drain", "--rows", "x"], "rows")])
def test_wrong_use(sluice, sqlitedb, args, text):
    assert text in sluice.run("bench", *args, db=sqlitedb, check=2).stderr


def test_a_schema_that_is_not_ours(sluice, pgdb):
    query(pgdb, "CREATE SCHEMA sluice_bench")
    query(pgdb, "CREATE TABLE sluice_bench.precious (id int)")
    done = sluice.run("bench", "drain", db=pgdb, check=1)
    assert "there is a schema sluice_bench that no bench has made" in done.stderr
    assert query(pgdb, "SELECT count(*) FROM sluice_bench.precious") == [(0,)]


def test_one_at_a_time(sluice, pgdb):
    p = sluice.start("bench", "idle", "--seconds", "1h", db=pgdb)
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_tables WHERE schemaname = 'sluice_bench'")[0][0] > 5, 30, "its tables")
    assert "another sluice bench is at work" in sluice.run("bench", "drain", db=pgdb, check=1).stderr
    p.signal(signal.SIGINT)
    p.wait(status=1)
    assert "interrupted" in p.stderr()
    assert nothing_is_left(pgdb, [])


def test_killed_it_leaves_no_node_behind(sluice, pgdb):
    """And the next one removes its tables."""
    p = sluice.start("bench", "idle", "--seconds", "1h", db=pgdb)
    nodes = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sluice'" \
        " AND pid <> pg_backend_pid()"
    wait_until(lambda: query(pgdb, nodes)[0][0] > 1, 30, "a node")
    p.kill9()
    wait_until(lambda: query(pgdb, nodes) == [(0,)], 30, "the node is gone")
    assert query(pgdb, "SELECT count(*) FROM pg_namespace WHERE nspname = 'sluice_bench'") == [(1,)]
    measure(sluice, pgdb, "drain", "--strategy", "lanes", "--workers", 1, "--rows", 100, "--rounds", 1)
    assert nothing_is_left(pgdb, [])


def test_a_node_that_fails(sluice, clean, tmp_path):
    done = sluice.run("bench", "drain", "--strategy", "lanes", "--workers", 1, "--rows", 100, "--sink",
                      f"file:{tmp_path}/no/such/folder", db=clean, check=1)
    assert "a node failed, and said:" in done.stderr and "no/such/folder" in done.stderr


def test_another_sink(sluice, clean, tmp_path):
    """Which is watched as well as null: is."""
    measure(sluice, clean, "drain", "--strategy", "lanes", "--workers", 1, "--rows", 500, "--rounds", 1, "--sink",
            f"file:{tmp_path}/out")
    assert len((tmp_path / "out").read_text().splitlines()) == 500


def test_tables_of_others_are_not_touched(sluice, box):
    sluice.run("push", "--topic", "t", "{}", db=box)
    measure(sluice, box, "drain", "--strategy", "lanes", "--workers", 1, "--rows", 100, "--rounds", 1)
    assert query(box, "SELECT count(*) FROM outbox") == [(1,)]


@pytest.fixture
def litebox_url(tmp_path):
    return f"sqlite:{tmp_path}/any.db"


# -- bench/run --------------------------------------------------------------------------------------

def bench_run(sluice, *args):
    return subprocess.run([os.path.join(ROOT, "bench", "run"), *args], cwd=sluice.cwd,
                          env={**sluice.env(), "SLUICE_BIN": sluice.bin},
                          capture_output=True, text=True, timeout=100 * PATIENCE)


def test_what_is_demanded(sluice):
    done = bench_run(sluice, "--only", "drain-lanes", "--rows", "2000", "--rounds", "1", "--json")
    report = json.loads(done.stdout)
    (result,) = report["results"]
    assert [d["what"] for d in result["demands"]] == ["lanes, 1 worker", "lanes, 2 workers: of one"]
    assert result["demands"][0]["bound"] == {"least": 0.85, "good": result["demands"][0]["value"] >= 0.85}
    assert report["good"] == result["bound"]["good"] == all(d["bound"]["good"] for d in result["demands"])
    assert done.returncode == (0 if report["good"] else 1)
    assert "fsync=on" in report["settings"][0]


def test_a_rate_that_is_not_reached_is_marked(sluice):
    done = bench_run(sluice, "--only", "steady", "--rows", "1000", "--rate", "3000000", "--seconds", "1")
    assert "/s for 1 s, 16 producers: not reached |" in done.stdout
    assert "\n- rate, of what was asked for: 0." in done.stdout and "demanded >= 0.99: MISSED" in done.stdout
    assert done.returncode == 1


def test_a_report(sluice):
    done = bench_run(sluice, "--only", "drain-sqlite", "--rows", "2000", "--rounds", "1")
    assert "### drain-sqlite (SQLite 3" in done.stdout and "| skip-locked by lease, 1 worker " in done.stdout
    assert "\n`sluice bench drain --batch 500 --rounds 1 --rows 500`\n" in done.stdout
    assert "demanded >= 0.7" in done.stdout


def test_size_of_the_tables(sluice):
    """Few messages: that it counts, and says what is demanded."""
    done = bench_run(sluice, "--only", "size-lanes", "--size-rows", "20000", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert result["messages"] == 20000 and set(result["before"]) == set(result["after"])
    assert result["before"]["outbox"] > 10000 * 200 and 0 < result["ratio"] < 10  # less than 1: a vacuum cut the file
    assert result["ratio"] == pytest.approx(sum(result["after"].values()) / sum(result["before"].values()))
    assert result["bound"] == {"most": 3, "good": result["ratio"] <= 3}


def test_unknown_scenario_is_refused(sluice):
    done = bench_run(sluice, "--only", "drain-lanse")
    assert done.returncode == 2
    assert "drain-lanse: no such part or scenario" in done.stderr
