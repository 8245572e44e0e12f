"""`python on_postgresql.py NAME URL COUNT`: fills a table and empties it with a peer. Runs in the peers' environment."""

import asyncio
import logging
import sys
import warnings

from meter import BODY, Meter


async def pgqueuer(url: str, count: int, batch: int) -> None:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.models import Job
    from pgqueuer.queries import Queries

    meter = Meter(count)
    driver = AsyncpgDriver(await asyncpg.connect(url))
    queries = Queries(driver)
    await queries.install()
    for start in range(0, count, 1000):
        number = min(1000, count - start)
        await queries.enqueue(["bench"] * number, [BODY.encode()] * number, [0] * number)
    queuer = PgQueuer(driver)

    @queuer.entrypoint("bench")
    async def handle(job: Job) -> None:
        meter.handled()

    await queuer.run(batch_size=batch)


async def procrastinate(url: str, count: int, concurrency: int) -> None:
    import procrastinate as library

    meter = Meter(count)
    app = library.App(connector=library.PsycopgConnector(conninfo=url))

    @app.task(queue="bench")
    async def handle(body: str) -> None:
        meter.handled()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, 1000):
            await handle.batch_defer_async(*({"body": BODY} for _ in range(start, min(start + 1000, count))))
        await app.run_worker_async(concurrency=concurrency, install_signal_handlers=False)


async def faststream_outbox(url: str, count: int, **options: object) -> None:
    from faststream import FastStream
    from faststream_outbox import OutboxBroker, make_outbox_table
    from sqlalchemy import MetaData
    from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

    meter = Meter(count)
    metadata = MetaData()
    table = make_outbox_table(metadata, table_name="outbox")
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=20)
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    broker = OutboxBroker(engine, outbox_table=table, logger=None)
    async with async_sessionmaker(engine)() as session, session.begin():
        for _ in range(count):
            await broker.publish(BODY, queue="bench", session=session)

    @broker.subscriber("bench", **options)
    async def handle(body: str) -> None:
        meter.handled()

    await FastStream(broker, logger=None).run()


async def oban(url: str, count: int, limit: int) -> None:
    from oban import Oban, worker
    from oban.schema import install

    meter = Meter(count)

    @worker(queue="bench")
    class Handler:
        async def process(self, job: object) -> None:
            meter.handled()

    pool = await Oban.create_pool(url)
    await install(pool)
    async with Oban(pool=pool) as publisher:
        for start in range(0, count, 1000):
            await publisher.enqueue_many(*(Handler.new({"body": BODY}) for _ in range(start, min(start + 1000, count))))
    async with Oban(pool=pool, queues={"bench": limit}):
        await asyncio.Event().wait()


async def pgmq(url: str, count: int, batch: int) -> None:
    from pgmq import AsyncPGMQueue, install_pgmq_from_sql

    meter = Meter(count)
    install_pgmq_from_sql(dsn=url)
    queue = AsyncPGMQueue(conn_string=url, init_extension=False)
    await queue.init()
    await queue.create_queue("bench")
    for start in range(0, count, 1000):
        await queue.send_batch("bench", [{"body": BODY}] * min(1000, count - start))
    while messages := await queue.read_batch("bench", batch_size=batch):
        for _ in messages:
            meter.handled()
        await queue.delete_batch("bench", [message.msg_id for message in messages])


PEERS = {
    "pgqueuer, default": lambda url, count: pgqueuer(url, count, 10),
    "pgqueuer, batches of 100": lambda url, count: pgqueuer(url, count, 100),
    "procrastinate, default": lambda url, count: procrastinate(url, count, 1),
    "procrastinate, concurrency 30": lambda url, count: procrastinate(url, count, 30),
    "Oban, default": lambda url, count: oban(url, count, 10),
    "Oban, limit 100": lambda url, count: oban(url, count, 100),
    "pgmq, one by one": lambda url, count: pgmq(url, count, 1),
    "pgmq, batches of 100": lambda url, count: pgmq(url, count, 100),
    "faststream-outbox, default": faststream_outbox,
    "faststream-outbox, 10 workers, batches of 100": lambda url, count: faststream_outbox(
        url, count, max_workers=10, fetch_batch_size=100, min_fetch_interval=0.01, terminal_flush_batch_size=100
    ),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    asyncio.run(PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
