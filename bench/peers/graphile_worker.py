"""graphile-worker: a job queue for Node.js. Without order as its page on performance says: a local queue of 500 and
completions in batches. With order: a named queue for each key."""
from .nodejs import NodePeer
from .peer import Config


def config(concurrency, local=0, delay=-1):
    name = f"concurrency {concurrency}"
    if local:
        name += f", local queue {local}, completions batched {delay} ms"
    return Config(name, {"concurrentJobs": concurrency, "localQueue": local, "batchDelay": delay})


class GraphileWorker(NodePeer):
    name = "graphile-worker"
    order = {"ordered": "named queues", "unordered": "none"}
    rows = {"ordered": 6000, "unordered": 100000}
    unfinished = "SELECT count(*) FROM graphile_worker._private_jobs"

    def configs(self, mode):
        if mode == "ordered":
            return [config(1), config(10), config(24, 500, 0)]
        return [config(24), config(24, 500, 0), config(10, 500, 5), config(50, 1000, 0)]


PEER = GraphileWorker
