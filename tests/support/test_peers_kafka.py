"""bench/peers/kafka without a network, a broker or a database: its figures, what it refuses, and what it says."""
import importlib.machinery
import importlib.util
import os
import sys

import pytest

import kafkajars
from harness import ROOT
from kafkaclient import KafkaRecord

PEERS = os.path.join(ROOT, "bench", "peers")
sys.path += [os.path.join(ROOT, "bench"), PEERS]
import kafka_figures as figures  # noqa: E402
import kafka_programs as programs  # noqa: E402
import kafka_table as tables  # noqa: E402
from parts.program import Wrong  # noqa: E402

NOWHERE = "the repository does not answer"


def record(number, key=None, partition=None, at=0):
    key = number % figures.KEYS if key is None else key
    return KafkaRecord("t", key % 3 if partition is None else partition, 0, at, b"order:%d" % key,
                       b'{"n":%d,"pad":""}' % number, [])


# -- Figures -----------------------------------------------------------------------------------------

def test_percentiles_are_values_that_were_measured():
    assert figures.percentiles(range(1000, 0, -1)) == {"p50": 500, "p99": 990, "p99.9": 999}
    assert figures.percentiles([3, 1, 2]) == {"p50": 2, "p99": 3, "p99.9": 3}
    assert figures.percentiles([7]) == {"p50": 7, "p99": 7, "p99.9": 7}


def test_latency_is_from_the_answer_to_commit():
    commits = [(1, 2, 9.9, 10.0), (3, 3, 10.0, 10.1)]
    got = figures.latencies({1: 10004, 2: 10009, 3: 10098}, commits)
    assert got == pytest.approx([4.5, 9.5, 0])  # half a millisecond each; before the answer is at once


def test_all_that_arrived_in_order():
    got = figures.arrivals([record(n, at=n * 10) for n in (1, 2, 1 + figures.KEYS)] + [record(n) for n in range(3, 5001)],
                           figures.KEYS + 1)
    assert got.first[1 + figures.KEYS] == (1 + figures.KEYS) * 10 and got.duplicates == 0


def test_a_duplicate_is_counted_and_keeps_its_first_time():
    got = figures.arrivals([record(1, at=5), record(2, at=6), record(1, at=9)], 2)
    assert got.duplicates == 1 and got.first == {1: 5, 2: 6}


@pytest.mark.parametrize("records, rows, why", [
    ([record(1), record(3)], 3, "2 different messages arrived of 3"),
    ([record(1), record(1)], 2, "1 different messages arrived of 2"),
    ([record(1), record(2), record(3)], 2, "3 different messages"),
    ([record(1, key=2)], 1, "has the key"),
    ([record(1 + figures.KEYS), record(1)], 2, "came after"),
    ([record(1, partition=0), record(1 + figures.KEYS, partition=1)], 2, "two partitions"),
])
def test_a_wrong_run_has_no_figures(records, rows, why):
    with pytest.raises(Wrong, match=why):
        figures.arrivals(records, rows)


# -- Who begins when ---------------------------------------------------------------------------------

def test_the_line_that_says_that_reading_begins():
    log = "2026-01-02 03:04:05.678 [main] INFO io.debezium.pipeline.ChangeEventSourceCoordinator - Starting streaming\n"
    assert programs.Engine("e", 256, "").reading_since("something\n" + log) == pytest.approx(1767323045.678)
    assert not programs.Engine("e", 256, "").reading_since("Starting")
    line = '{"time":"2026-01-02T03:04:05.678Z","level":"info","msg":"node started"}\n'
    assert programs.Sluice("s", "", 4).reading_since(line) == pytest.approx(1767323045.678)
    assert not programs.Sluice("s", "", 4).reading_since(line[:30])


# -- The table ---------------------------------------------------------------------------------------

def of(rate, ms, mb):
    processor = {"all": 10, "program": 5}
    return {"drain": {"rate": rate, "whole_rate": rate / 2, "memory_mb": mb, "processor": processor, "duplicates": 0},
            "latency": {"p50": ms, "p99": ms * 10, "p99.9": ms * 20, "memory_mb": mb, "processor": processor, "duplicates": 1}}


def test_ratios_are_of_the_same_round():
    rounds = [{"sluice-4": of(400, 2, 20), "debezium-engine": of(200, 4, 200)},
              {"sluice-4": of(100, 8, 20), "debezium-engine": of(50, 16, 200)},
              {"sluice-4": of(900, 1, 20), "debezium-engine": of(100, 8, 200)}]
    found = tables.comparisons(rounds, ["debezium-engine"])
    assert found["rate"] == {"debezium-engine": 2} and found["p99"] == {"debezium-engine": 0.5}
    assert tables.verdict(found, "")[0]
    text = tables.table(rounds, ["sluice-4", "debezium-engine"], ["debezium-engine"])
    lines = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in text.split("\n") if line}
    assert lines["rate, messages/s"] == ["400 (100..900)", "100 (50..200)"]
    assert lines["p99, ms"] == ["20.0 (10.0..80.0)", "80.0 (40.0..160.0)"]
    assert lines["duplicates"] == ["3", "3"]
    assert lines["rate"] == ["2.00 (2.0x better)"] and lines["memory in the drain"] == ["0.10 (10.0x better)"]


@pytest.mark.parametrize("ours, late", [
    (of(99, 1, 1), "rate of debezium-engine"), (of(200, 4, 1), "p99 of debezium-engine"),
    (of(200, 1, 50), "memory in the drain of debezium-engine, memory at the steady rate of debezium-engine")])
def test_behind_is_said_and_fails(ours, late):
    found = tables.comparisons([{"sluice-4": ours, "debezium-engine": of(100, 3, 40)}], ["debezium-engine"])
    assert tables.verdict(found, "") == (False, f"FAILED: sluice-4 is not ahead in {late}.")
    assert "WORSE" in tables.table([{"sluice-4": ours, "debezium-engine": of(100, 3, 40)}], ["sluice-4"], ["debezium-engine"])


def test_a_table_without_debezium_says_why():
    text = tables.table([{"sluice-4": of(100, 1, 1)}], ["sluice-4"], [], NOWHERE)
    assert "| not available |" in text and f"Debezium: not available: {NOWHERE}" in text


# -- The program -------------------------------------------------------------------------------------

@pytest.fixture
def peers():
    """bench/peers/kafka, which has no ending, as a module."""
    loader = importlib.machinery.SourceFileLoader("peers_kafka", os.path.join(PEERS, "kafka"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("peers_kafka", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def no_jars(monkeypatch):
    def fetch(*_):
        raise kafkajars.Unreachable(NOWHERE)
    monkeypatch.setattr(kafkajars, "fetch", fetch)
    monkeypatch.setenv("SLUICE_BIN", sys.executable)  # any file: it is not run


@pytest.fixture
def quiet_signals(monkeypatch, peers):
    monkeypatch.setattr(peers.signal, "signal", lambda *_: None)


def test_without_jars_there_is_nothing_to_compare(peers, no_jars, quiet_signals, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kafka", "--only", "debezium-engine"])
    assert peers.main() == 0
    assert f"not available: {NOWHERE}" in capsys.readouterr().out


def test_sluice_alone_is_measured_without_debezium(peers, no_jars, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kafka"])
    chosen, why = peers.programs(peers.parse(), "")
    assert [p.name for p in chosen] == ["sluice-4", "sluice-1"] and why == NOWHERE


def test_who_is_asked_for(peers, monkeypatch):
    monkeypatch.setenv("SLUICE_BIN", sys.executable)
    monkeypatch.setattr(peers, "compile_engine", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["kafka", "--only", "debezium-connect", "--only", "debezium-engine-128m", "--heap", "300"])
    chosen, why = peers.programs(peers.parse(), "")
    assert [(type(p).__name__, p.heap_mb) for p in chosen] == [("Connect", 300), ("Engine", 128)] and not why


# -- The list of jars --------------------------------------------------------------------------------

def test_the_list_is_pinned_and_has_its_own_folder():
    jars = kafkajars.jars_of(programs.JARS)
    assert jars[0].artifact == "debezium-connector-postgres" and all(len(j.sha256) == 64 for j in jars)
    assert {"debezium-embedded", "connect-runtime", "kafka-clients", "postgresql"} <= {j.artifact for j in jars}
    assert os.path.basename(kafkajars.folder(programs.JARS)) == f"debezium-{jars[0].version}"
    assert os.path.basename(kafkajars.folder()).startswith("kafka-")
