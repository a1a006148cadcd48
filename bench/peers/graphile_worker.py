"""graphile-worker: a job queue for Node.js. Without order as its page on performance says: a local queue of 500 and
completions in batches. With order: a named queue for each key, both plainly
and with the same batches."""
from .nodejs import NodePeer
from .peer import Config


def config(rows, concurrency, local=0, delay=-1, poll=2000):
    """2,000 ms is the default poll interval. It matters where a fetch gets fewer jobs than it asks for: of a named queue
    a batch takes one job."""
    name = f"concurrency {concurrency}"
    if local:
        name += f", local queue {local}, completions batched {delay} ms"
    if poll != 2000:
        name += f", poll {poll} ms"
    settings = {"concurrentJobs": concurrency, "localQueue": local, "batchDelay": delay, "pollInterval": poll}
    return Config(name, settings, rows)


class GraphileWorker(NodePeer):
    name = "graphile-worker"
    order = {"ordered": "named queues", "unordered": "none"}
    unfinished = "SELECT count(*) FROM graphile_worker._private_jobs"

    def configs(self, mode):
        if mode == "ordered":
            return [config(10000, 10), config(100000, 24, 500, 0), config(100000, 24, 500, 0, 5)]
        return [config(20000, 24), config(100000, 24, 500, 0), config(100000, 10, 500, 5), config(100000, 50, 1000, 0)]


PEER = GraphileWorker
