"""pg-boss: a job queue for Node.js. Pollers take 500 at a time and, while batches are full, do not wait between two."""
from .nodejs import NodePeer
from .peer import Config


def config(pollers, batch=500):
    return Config(f"{pollers} poller{'s' * (pollers > 1)}, batch {batch}", {"pollers": pollers, "batch": batch})


class PgBoss(NodePeer):
    name = "pg-boss"
    order = {"ordered": "policy key_strict_fifo", "unordered": "none"}
    rows = {"ordered": 20000, "unordered": 50000}
    unfinished = "SELECT count(*) FROM pgboss.job WHERE state < 'completed' AND name = 'deliver'"

    def configs(self, mode):
        return [config(1), config(2)] if mode == "ordered" else [config(1), config(2), config(4)]


PEER = PgBoss
