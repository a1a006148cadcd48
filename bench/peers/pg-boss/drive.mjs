// Drives pg-boss. Its policy key_strict_fifo keeps the order of a key.
import { drain, enqueueAll, load, main, now } from "../lib/driver.mjs";

const { PgBoss } = await load("pg-boss");

async function open(s) {
  const boss = new PgBoss({ connectionString: s.url });
  boss.on("error", (e) => console.error(e));
  await boss.start();
  return boss;
}

async function enqueue(s) {
  const boss = await open(s);
  await boss.createQueue("deliver", s.ordered ? { policy: "key_strict_fifo" } : {});
  await enqueueAll(s, (messages) => boss.insert("deliver", messages.map(({ key, data }) =>
    ({ data, ...(s.ordered ? { singletonKey: key } : {}) }))));
  await boss.stop();
}

main({
  enqueue,
  drain: (s) => drain(s, async (record) => {
    const boss = await open(s);
    const options = {
      batchSize: s.batch, localConcurrency: s.pollers, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5,
    };
    await boss.work("deliver", options, async (jobs) => {
      for (const { data } of jobs) {
        const start = now();
        await undefined; // so that another could begin
        record.note(data.n, start, now());
      }
    });
    return () => boss.stop();
  }),
});
