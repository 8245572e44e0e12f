"""`python on_rabbitmq.py NAME URL COUNT`: fills a queue and empties it with a peer. Runs in the peers' environment.

Messages are persistent, and acked after the handler; the queue is a quorum queue where the peer can declare one.
"""

import asyncio
import logging
import sys
import warnings

from meter import BODY, Meter

QUEUE = "bench"
QUORUM = {"x-queue-type": "quorum"}


async def filled(url: str, count: int) -> None:
    """`count` messages in the queue, without confirms."""
    import aio_pika

    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        for _ in range(count):
            message = aio_pika.Message(BODY.encode(), content_type="text/plain", delivery_mode=2)
            await channel.default_exchange.publish(message, QUEUE)


async def aio_pika_bare(url: str, count: int, prefetch: int) -> None:
    import aio_pika

    meter = Meter(count)
    await filled(url, count)
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=prefetch)
    queue = await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)

    async def handle(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        meter.handled()
        await message.ack()

    await queue.consume(handle)
    await asyncio.sleep(600)


async def faststream(url: str, count: int, prefetch: int | None) -> None:
    from faststream import AckPolicy, FastStream
    from faststream.rabbit import Channel, QueueType, RabbitBroker, RabbitQueue

    meter = Meter(count)
    await filled(url, count)
    broker = RabbitBroker(url, default_channel=Channel(prefetch_count=prefetch), logger=None)

    @broker.subscriber(RabbitQueue(QUEUE, queue_type=QueueType.QUORUM, durable=True), ack_policy=AckPolicy.NACK_ON_ERROR)
    async def handle(body: str) -> None:
        meter.handled()

    await FastStream(broker, logger=None).run()


async def taskiq(url: str, count: int, qos: int) -> None:
    from taskiq.acks import AcknowledgeType
    from taskiq.receiver import Receiver
    from taskiq_aio_pika import AioPikaBroker

    meter = Meter(count)
    broker = AioPikaBroker(url, qos=qos)

    @broker.task
    async def handle(body: str) -> None:
        meter.handled()

    await broker.startup()
    for start in range(0, count, 100):
        await asyncio.gather(*(handle.kiq(BODY) for _ in range(start, min(start + 100, count))))
    await broker.shutdown()
    broker.is_worker_process = True
    await broker.startup()
    receiver = Receiver(broker, max_async_tasks=100, ack_type=AcknowledgeType.WHEN_EXECUTED, run_startup=False)
    await receiver.listen(asyncio.Event())


def celery(url: str, count: int, pool: str, multiplier: int) -> None:
    import celery as library
    from kombu import Queue

    meter = Meter(count)
    app = library.Celery("bench", broker=url)
    app.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        task_default_queue=QUEUE,
        task_queues=[Queue(QUEUE, routing_key=QUEUE, queue_arguments=QUORUM)],
        worker_detect_quorum_queues=True,
        worker_prefetch_multiplier=multiplier,
        worker_redirect_stdouts=False,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=False,
    )

    @app.task(name="bench.handle")
    def handle(body: str) -> None:
        meter.handled()

    with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
        for _ in range(count):
            handle.apply_async((BODY,), producer=producer, routing_key=QUEUE, exchange="")
    app.worker_main(["worker", f"--pool={pool}", "--concurrency=2", "--without-gossip", "--without-mingle", "--loglevel=ERROR"])


def dramatiq(url: str, count: int, threads: int) -> None:
    import time

    import dramatiq as library
    from dramatiq.brokers.rabbitmq import RabbitmqBroker

    meter = Meter(count)
    broker = RabbitmqBroker(url=url, middleware=[])
    library.set_broker(broker)

    @library.actor(queue_name=QUEUE)
    def handle(body: str) -> None:
        meter.handled()

    for _ in range(count):
        handle.send(BODY)
    library.Worker(broker, worker_threads=threads).start()
    time.sleep(600)


PEERS = {
    "aio-pika, prefetch 10": lambda url, count: asyncio.run(aio_pika_bare(url, count, 10)),
    "aio-pika, prefetch 100": lambda url, count: asyncio.run(aio_pika_bare(url, count, 100)),
    "FastStream, default": lambda url, count: asyncio.run(faststream(url, count, None)),
    "FastStream, prefetch 100": lambda url, count: asyncio.run(faststream(url, count, 100)),
    "taskiq, default": lambda url, count: asyncio.run(taskiq(url, count, 10)),
    "taskiq, qos 100": lambda url, count: asyncio.run(taskiq(url, count, 100)),
    "Celery, default: 2 processes": lambda url, count: celery(url, count, "prefork", 4),
    "Celery, solo, multiplier 128": lambda url, count: celery(url, count, "solo", 128),
    "Dramatiq, default: 8 threads": lambda url, count: dramatiq(url, count, 8),
    "Dramatiq, 2 threads": lambda url, count: dramatiq(url, count, 2),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
