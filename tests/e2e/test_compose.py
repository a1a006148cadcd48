"""examples/docker-compose without Docker: its producer and two nodes with its settings, on servers of our own."""
import json
import os
import subprocess
from urllib.parse import parse_qs, urlsplit

import pytest

from harness import ROOT, query, wait_until

FOLDER = os.path.join(ROOT, "examples", "docker-compose")


def services():
    """Parsed as Compose would."""
    yaml = pytest.importorskip("yaml")
    with open(os.path.join(FOLDER, "compose.yaml"), encoding="utf-8") as f:
        return yaml.safe_load(f)["services"]


def psql_env(db):
    """How psql is told what a URL says."""
    url = urlsplit(db)
    said = {k: v[0] for k, v in parse_qs(url.query).items()}
    return {"PGHOST": said.get("host") or url.hostname, "PGPORT": str(said.get("port") or url.port or 5432),
            "PGUSER": said.get("user") or url.username or "", "PGDATABASE": url.path.lstrip("/")}


def test_the_file_holds_together():
    """What a service waits for is there, and the program has the commands that it is given."""
    all = services()
    for name, service in all.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in all, f"{name} waits for {other}"
            assert how["condition"] != "service_healthy" or "healthcheck" in all[other]
    assert all["node1"]["environment"] == all["node2"]["environment"] == all["init"]["environment"]
    assert all["node1"]["command"] != all["node2"]["command"]


def test_producer_and_two_nodes(pgdb, sluice, kafka):
    all = services()
    env = {"SLUICE_DB": pgdb, "SLUICE_SINK": f"kafka://{kafka.bootstrap()}"}
    assert set(env) == set(all["init"]["environment"])
    where = kafka.new_topic(partitions=6)
    sluice.run(*all["init"]["command"], env=env)
    create = all["tables"]["command"]
    subprocess.run(create, env={**os.environ, **psql_env(pgdb)}, check=True, capture_output=True)
    producer = subprocess.Popen(["sh", os.path.join(FOLDER, "producer.sh")], env={**os.environ, **psql_env(pgdb)},
                                stderr=subprocess.PIPE, start_new_session=True)
    try:
        nodes = [sluice.start(*all[n]["command"], "--target", where, env=env) for n in ("node1", "node2")]
        wait_until(lambda: query(pgdb, "SELECT coalesce(sum(paid), 0) FROM orders")[0][0] >= 40, 120, "40 payments")
    finally:
        os.killpg(producer.pid, 15)
        complaint = producer.communicate()[1]
    assert complaint in (b"", b"Terminated\n"), complaint
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                   " AND application_name = 'psql'") == [(0,)], 30, "its last transaction is over")
    paid = query(pgdb, "SELECT sum(paid) FROM orders")[0][0]
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox") == [(0,)], 60, "all is delivered")
    for node in nodes:
        node.term()
        node.wait(status=0)
    seen = {}
    for r in kafka.read(where):
        event = json.loads(r.value)
        assert r.key == b"order:%d" % event["order"]
        assert event["paid"] == seen.get(r.key, 0) + 1  # without a gap, and in order
        seen[r.key] = event["paid"]
    assert sum(seen.values()) == paid
