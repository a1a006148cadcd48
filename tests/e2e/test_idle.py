"""A node that has nothing to do leaves the database in peace."""
import time

import pytest

from harness import query, wait_until
from servers import Postgres

SECONDS = 12
STATEMENTS_PER_SECOND = 2


@pytest.fixture(scope="module")
def counting_pg():
    """A server that counts the statements it runs, BEGIN and COMMIT included."""
    with Postgres(settings={"shared_preload_libraries": "pg_stat_statements"}) as server:
        server.sql("CREATE EXTENSION pg_stat_statements")
        yield server


def statements(url):
    """What has run since the reset, but for ours: (calls, text)."""
    return query(url, """SELECT s.calls, s.query FROM pg_stat_statements s
                          WHERE s.query NOT LIKE '%pg_stat_statements%' ORDER BY s.calls DESC""")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["skip-locked", "advisory", "guard", "lanes"])
def test_an_idle_node_asks_twice_a_second(sluice, counting_pg, strategy):
    """At the defaults, with four workers: they do not all look by themselves."""
    url = counting_pg.url()
    sluice.run("init", "--db", url)
    node = sluice.start("run", "--db", url, "--sink", "null:", "--strategy", strategy)
    node.wait_log("node started")
    wait_until(lambda: calm(url), 30, "the workers have come to rest")
    query(url, "SELECT pg_stat_statements_reset()")
    time.sleep(SECONDS)  # not to synchronise: this is the time over which we count
    ran = statements(url)
    node.term()
    node.wait(status=0)
    calls = sum(n for n, _ in ran)
    assert calls > 0, "it does look"
    assert calls <= STATEMENTS_PER_SECOND * SECONDS, ran


def calm(url):
    """Whether a second passed with few statements."""
    query(url, "SELECT pg_stat_statements_reset()")
    time.sleep(1)
    return sum(n for n, _ in statements(url)) <= 2 * STATEMENTS_PER_SECOND
