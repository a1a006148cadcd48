"""Drives procrastinate. Jobs with the same lock run one after the other, in order."""
import asyncio
import itertools
import logging
import os
import sys

import procrastinate
import psycopg

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from driver import Record, arguments, messages, now  # noqa: E402

CHUNK = 1000
logging.disable(logging.INFO)  # it would log each job


def make_app(s):
    connector = procrastinate.PsycopgConnector(conninfo=s["url"], min_size=2, max_size=s.get("concurrency", 1) + 2)
    return procrastinate.App(connector=connector)


async def enqueue(s):
    app = make_app(s)

    @app.task(name="deliver")
    async def deliver(n, pad):
        pass

    def job(key, payload):
        return deliver.configure(**({"lock": key} if s["ordered"] else {})).make_new_job(**payload)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        all_jobs = (job(key, payload) for _, key, payload in messages(s))
        while chunk := list(itertools.islice(all_jobs, CHUNK)):
            await app.job_manager.batch_defer_jobs_async(jobs=chunk)


async def until_done(s, record):
    """All handled and none left by the peer's tables; or none left for a while, if messages were lost."""
    conn = await psycopg.AsyncConnection.connect(s["url"], autocommit=True)
    empty = 0
    while True:
        for _ in range(200):
            if record.handled >= s["rows"]:
                break
            await asyncio.sleep(0.01)
        (left,) = await (await conn.execute(s["unfinished"])).fetchone()
        empty = 0 if left else empty + 1
        if empty and record.handled >= s["rows"] or empty >= 3:
            return await conn.close()


async def drain(s):
    app, record = make_app(s), Record()

    @app.task(name="deliver")
    async def deliver(n, pad):
        start = now()
        await asyncio.sleep(0)  # so that another could begin
        record.note(n, start, now())

    async with app.open_async():
        started = now()
        worker = asyncio.create_task(app.run_worker_async(
            concurrency=s["concurrency"], delete_jobs="successful", install_signal_handlers=False,
            fetch_job_polling_interval=0.05))
        await until_done(s, record)
        ended = now()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    record.write(s["record"], started, ended)


if __name__ == "__main__":
    verb, settings = arguments()
    asyncio.run({"enqueue": enqueue, "drain": drain}[verb](settings))
