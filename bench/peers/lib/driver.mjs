// What the drivers of Node.js have in common: see bench/peers/peer.py for how they are called.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";


/** A package of the peer's own folder. */
export function load(name) {
  const found = createRequire(process.env.PEER_HOME + "/package.json").resolve(name);
  return import(pathToFileURL(found).href);
}

/** Calls add([{n, key, data}]) for all messages, in order. No call has two messages of a key: both peers here sort by a
 *  time that is the same for all jobs of one insert, and would be blamed for what they do not promise. */
export async function enqueueAll(s, add) {
  const chunk = Math.min(1000, s.keys);
  for (let first = 1; first <= s.rows; first += chunk) {
    const messages = [];
    for (let n = first; n <= Math.min(s.rows, first + chunk - 1); n++)
      messages.push({ n, key: `order:${n % s.keys}`, data: { n, pad: "x".repeat(s.pad - String(n).length) } });
    await add(messages);
  }
}

export const now = () => performance.now() / 1000;

/** Notes each message, in memory. */
export class Record {
  constructor(rows) {
    this.rows = rows;
    this.numbers = new Float64Array(3 * (2 * rows + 1000));
    this.handled = 0;
    this.all = new Promise((resolve) => (this.full = resolve));
  }

  note(n, start, end) {
    this.numbers.set([n, start, end], 3 * this.handled);
    if (++this.handled >= this.rows) this.full();
  }

  /** Until all are handled, and left() is 0; or, if messages were lost, until left() is 0 for a while. */
  async untilDone(left) {
    for (let empty = 0; this.handled < this.rows && empty < 3; ) {
      await Promise.race([this.all, sleep(2000)]);
      if (this.handled < this.rows) empty = (await left()) === 0 ? empty + 1 : 0;
    }
    while ((await left()) !== 0) await sleep(2);
  }

  write(path) {
    writeFileSync(path, new Uint8Array(this.numbers.buffer, 0, this.handled * 24));
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A connection of our own, for the query that counts what is not done. */
export async function counter(s) {
  const { default: pg } = await load("pg");
  const client = new pg.Client({ connectionString: s.url });
  await client.connect();
  return { left: async () => Number(Object.values((await client.query(s.unfinished)).rows[0])[0]), end: () => client.end() };
}

/** Runs one of the verbs, by the arguments of the program. */
export async function main(verbs) {
  await verbs[process.argv[2]](JSON.parse(process.argv[3]));
}

/** `start(record)` starts workers and returns how to stop them. */
export async function drain(s, start) {
  const record = new Record(s.rows);
  const { left, end } = await counter(s);
  const stop = await start(record);
  const started = now();
  await record.untilDone(left);
  const ended = now();
  await stop();
  await end();
  record.write(s.record);
  console.log(JSON.stringify({ started, ended }));
}
