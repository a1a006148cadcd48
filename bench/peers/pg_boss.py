"""pg-boss: a job queue for Node.js. Pollers take 500 at a time and, while batches are full, do not wait between two."""
from .nodejs import NodePeer
from .peer import Config


def config(rows, pollers, batch=500):
    return Config(f"{pollers} poller{'s' * (pollers > 1)}, batch {batch}", {"pollers": pollers, "batch": batch}, rows)


class PgBoss(NodePeer):
    name = "pg-boss"
    order = {"ordered": "policy key_strict_fifo", "unordered": "none"}
    unfinished = "SELECT count(*) FROM pgboss.job WHERE state < 'completed' AND name = 'deliver'"

    def configs(self, mode):
        return [config(100000, n) for n in (1, 2)] if mode == "ordered" else [config(200000, n) for n in (1, 2, 4)]


PEER = PgBoss
