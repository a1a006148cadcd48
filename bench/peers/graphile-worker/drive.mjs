// Drives graphile-worker. A named queue is what it has for "one at a time, in order".
import { drain, enqueueAll, load, main, now } from "../lib/driver.mjs";

const { Logger, makeWorkerUtils, run } = await load("graphile-worker");
const logger = new Logger(() => () => {}); // it would log each job

async function enqueue(s) {
  const utils = await makeWorkerUtils({ connectionString: s.url, logger });
  await utils.migrate();
  await enqueueAll(s, (messages) => utils.addJobs(messages.map(({ key, data }) =>
    ({ identifier: "deliver", payload: data, ...(s.ordered ? { queueName: key } : {}) }))));
  await utils.release();
}

function worker(s) {
  const { concurrentJobs, localQueue, batchDelay, pollInterval } = s;
  return {
    connectionString: s.url, logger, concurrentJobs, maxPoolSize: concurrentJobs + 1, pollInterval,
    ...(localQueue ? { localQueue: { size: localQueue } } : {}),
    ...(batchDelay >= 0 ? { completeJobBatchDelay: batchDelay, failJobBatchDelay: batchDelay } : {}),
  };
}

main({
  enqueue,
  drain: (s) => drain(s, async (record) => {
    const taskList = {
      deliver: async ({ n }) => {
        const start = now();
        await undefined; // so that another could begin
        record.note(n, start, now());
      },
    };
    const runner = await run({ preset: { worker: worker(s) }, taskList, noHandleSignals: true });
    return () => runner.stop();
  }),
});
