"""A node that has nothing to do leaves the database in peace."""
import time

import pytest

from harness import query, wait_until
from servers import Postgres

SECONDS = 12
STATEMENTS_PER_SECOND = 2
STRATEGIES = ["skip-locked", "advisory", "guard", "lanes"]


@pytest.fixture(scope="module")
def counting_pg():
    """A server that counts the statements it runs, BEGIN and COMMIT included."""
    with Postgres(settings={"shared_preload_libraries": "pg_stat_statements"}) as server:
        server.sql("CREATE EXTENSION pg_stat_statements")  # in one database it tells of all
        yield server


def statements(url):
    """What has run since the reset, but for ours: (database, calls, text)."""
    return query(url, """SELECT d.datname, s.calls, s.query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
                          WHERE s.query NOT LIKE '%pg_stat_statements%' ORDER BY s.calls DESC""")


@pytest.mark.alone
@pytest.mark.slow
def test_an_idle_node_asks_twice_a_second(sluice, counting_pg):
    """At the defaults, with four workers: they do not all look by themselves. A node of each strategy, in a database of
    its own."""
    urls = {strategy: counting_pg.new_database() for strategy in STRATEGIES}
    nodes = []
    for strategy, url in urls.items():
        sluice.run("init", db=url)
        nodes.append(sluice.start("run", "--sink", "null:", "--strategy", strategy, db=url))
    for node in nodes:
        node.wait_log("node started")
    wait_until(lambda: all(n <= 2 * STATEMENTS_PER_SECOND for n, _ in during(counting_pg, urls, 1)), 30,
               "the workers have come to rest")
    began = time.monotonic()
    counted = during(counting_pg, urls, SECONDS)
    passed = time.monotonic() - began  # on a busy machine more than it was meant to be
    for node in nodes:
        node.term()
        node.wait(status=0)
    for strategy, (calls, ran) in zip(urls, counted, strict=True):
        assert calls > 0, f"{strategy}: it does look"
        assert calls <= STATEMENTS_PER_SECOND * passed, (strategy, ran)


def during(server, urls, seconds):
    """In each database: how many statements ran in this time, and which."""
    query(server.url(), "SELECT pg_stat_statements_reset()")
    time.sleep(seconds)  # not to synchronise: this is the time over which we count
    every = statements(server.url())
    rows = [[(calls, text) for name, calls, text in every if url.endswith(f"/{name}")] for url in urls.values()]
    return [(sum(calls for calls, _ in ran), ran) for ran in rows]
