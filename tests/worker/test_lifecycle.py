"""Running until stopped: by a call, a signal, a cancellation, once and twice."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from outbox import Archiver, Consumer, MessageRelay, Worker
from outbox.engine.lifecycle import Stopping, run_until_stopped
from outbox.transports.rabbitmq.connection import OwnedConnection
from tests.servers.moto import CREDENTIALS
from tests.worker.support import running

SOON = 30.0
AMQP, SQS = "amqp://guest:guest@127.0.0.1:{}/", "sqs://eu-west-1?endpoint_url=http://127.0.0.1:{}"
CONSUMER = Consumer("order.placed", lambda body: None, queue="order-placed")


class Work:
    """Works until asked to stop, then waits for `let_go` before it has drained."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.drained = False
        self.cancelled = False

    async def __call__(self, stopping: Stopping) -> None:
        self.began.set()
        try:
            await stopping.wait()
            self.asked.set()
            await self.let_go.wait()
            self.drained = True
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_a_stop_lets_the_work_drain_and_then_returns() -> None:
    work, stop = Work(), Stopping()
    run = asyncio.create_task(run_until_stopped(work, stop))
    await work.began.wait()
    stop.request()
    stop.request()
    await work.asked.wait()
    assert not run.done()
    work.let_go.set()
    await asyncio.wait_for(run, SOON)
    assert work.drained


async def test_a_stop_before_the_run_makes_it_return_without_beginning() -> None:
    work, stop = Work(), Stopping()
    stop.request()
    await asyncio.wait_for(run_until_stopped(work, stop), SOON)
    assert not work.began.is_set()


async def test_a_stop_from_another_thread_is_heard() -> None:
    work, stop = Work(), Stopping()
    work.let_go.set()
    run = asyncio.create_task(run_until_stopped(work, stop))
    await work.began.wait()
    threading.Thread(target=stop.request).start()
    await asyncio.wait_for(run, SOON)
    assert work.drained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "url"),
    [
        (lambda database, broker: MessageRelay(database, broker=broker), AMQP),
        (lambda database, broker: MessageRelay(database, broker=broker), SQS),
        (lambda database, broker: Worker(broker=broker, consumers=[CONSUMER], db_engine_url=database), AMQP),
        (lambda database, broker: Worker(broker=broker, consumers=[CONSUMER], db_engine_url=database), SQS),
        (lambda database, broker: Archiver(database, broker=broker, queues=["mail"]), AMQP),
    ],
    ids=["relay on RabbitMQ", "relay on SQS", "worker on RabbitMQ", "worker on SQS", "archiver"],
)
async def test_a_stop_does_not_wait_for_a_broker_that_does_not_answer(
    database: str, monkeypatch: pytest.MonkeyPatch, url: str, made: Callable[[str, str], MessageRelay | Worker | Archiver]
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    endless, connection_of = timedelta(hours=1), OwnedConnection.__init__
    monkeypatch.setattr("outbox.transports.aws.client.READ_TIMEOUT", endless)
    monkeypatch.setattr(
        OwnedConnection,
        "__init__",
        lambda self, url, *, purpose, connect_timeout: connection_of(self, url, purpose=purpose, connect_timeout=endless),
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        broker = url.format(silent.getsockname()[1])
        async with asyncio.timeout(SOON), running(made(database, broker)):
            connection, _ = await asyncio.get_running_loop().sock_accept(silent)
        connection.close()


async def test_work_that_ends_by_itself_ends_the_run() -> None:
    async def brief(_: Stopping) -> None: ...

    await asyncio.wait_for(run_until_stopped(brief, Stopping()), SOON)


async def test_what_the_work_raises_is_raised() -> None:
    async def faulty(_: Stopping) -> None:
        raise LookupError("no such queue")

    with pytest.raises(LookupError, match="no such queue"):
        await run_until_stopped(faulty, Stopping())


async def test_work_that_outlasts_the_grace_period_is_cancelled_and_the_run_returns() -> None:
    work, stop = Work(), Stopping()
    run = asyncio.create_task(run_until_stopped(work, stop, grace_period=timedelta(milliseconds=20)))
    await work.began.wait()
    stop.request()
    await asyncio.wait_for(run, SOON)
    assert work.cancelled


async def test_a_cancelled_run_drains_and_raises_the_cancellation() -> None:
    work = Work()
    run = asyncio.create_task(run_until_stopped(work, Stopping()))
    await work.began.wait()
    run.cancel()
    await work.asked.wait()
    assert not run.done()
    work.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, SOON)
    assert work.drained


async def test_a_cancelled_run_can_be_run_again() -> None:
    stop = Stopping()
    for _ in range(2):
        work = Work()
        work.let_go.set()
        run = asyncio.create_task(run_until_stopped(work, stop))
        await work.began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, SOON)
        assert work.drained


async def test_a_run_cancelled_twice_ends_at_once() -> None:
    work = Work()
    run = asyncio.create_task(run_until_stopped(work, Stopping()))
    await work.began.wait()
    run.cancel()
    await work.asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, SOON)
    assert work.cancelled


async def test_a_cancellation_while_draining_after_a_stop_does_not_cut_it_short() -> None:
    work, stop = Work(), Stopping()
    run = asyncio.create_task(run_until_stopped(work, stop))
    await work.began.wait()
    stop.request()
    await work.asked.wait()
    run.cancel()
    work.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, SOON)
    assert work.drained


async def test_a_timeout_around_a_run_drains_it() -> None:
    work = Work()
    work.let_go.set()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run_until_stopped(work, Stopping()), 0.02)
    assert work.drained


async def test_two_runs_in_one_process_both_handle_a_signal_and_the_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    first, second = Work(), Work()
    runs = [asyncio.create_task(run_until_stopped(work, Stopping())) for work in (first, second)]
    await first.began.wait()
    await second.began.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    first.let_go.set()
    await asyncio.wait_for(runs[0], SOON)
    await second.asked.wait()
    second.let_go.set()
    await asyncio.wait_for(runs[1], SOON)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("free", [signal.SIGINT, signal.SIGTERM])
async def test_signals_that_the_host_handles_are_left_alone(free: signal.Signals) -> None:
    taken = signal.SIGTERM if free is signal.SIGINT else signal.SIGINT

    def theirs(*_: object) -> None: ...

    before = signal.signal(taken, theirs), signal.getsignal(free)
    try:
        work, stop = Work(), Stopping()
        work.let_go.set()
        run = asyncio.create_task(run_until_stopped(work, stop))
        await work.began.wait()
        assert (signal.getsignal(taken), signal.getsignal(free)) == (theirs, before[1])
        stop.request()
        await asyncio.wait_for(run, SOON)
        assert signal.getsignal(taken) is theirs
    finally:
        signal.signal(taken, before[0])


async def test_signals_are_left_alone_if_asked() -> None:
    before = signal.getsignal(signal.SIGTERM)
    work, stop = Work(), Stopping()
    work.let_go.set()
    run = asyncio.create_task(run_until_stopped(work, stop, handle_signals=False))
    await work.began.wait()
    assert signal.getsignal(signal.SIGTERM) is before
    stop.request()
    await asyncio.wait_for(run, SOON)


PROGRAM = textwrap.dedent(
    """
    import asyncio
    from outbox.engine.lifecycle import Stopping, run_until_stopped

    async def work(stopping):
        print("running", flush=True)
        await stopping.wait()
        print("draining", flush=True)
        try:
            await asyncio.sleep({drain})
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise
        print("drained", flush=True)

    async def main():
        await run_until_stopped(work, Stopping())
        print("returned", flush=True)

    asyncio.run(main())
    """
)


@contextmanager
def _program(drain: float) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM.format(drain=drain)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_to_a_process_drains_it(number: signal.Signals) -> None:
    with _program(drain=0.05) as process:
        assert _line(process) == "running"
        process.send_signal(number)
        assert [_line(process) for _ in range(3)] == ["draining", "drained", "returned"]
        assert process.wait(SOON) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_draining(number: signal.Signals) -> None:
    with _program(drain=60) as process:
        assert _line(process) == "running"
        process.send_signal(number)
        assert _line(process) == "draining"
        time.sleep(0.6)  # not to wait for something: a second signal counts half a second after the first
        process.send_signal(number)
        assert [_line(process) for _ in range(2)] == ["cancelled", "returned"]
        assert process.wait(SOON) == 0
