"""`outbox demo`: places orders at a running service and reports how they ended."""

import asyncio
import math
import random
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from outbox.cli.command import Command
from outbox.cli.options import SECONDS
from outbox.cli.output import echo
from outbox.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    import httpx

ENDS = {"order.confirmed": "confirmed", "order.rejected": "rejected"}
"""Last event of an order, and the status it stands for."""
WATCHERS = 4
MOST_CONNECTIONS = 64
_CUSTOMERS = ("ada", "alan", "barbara", "edsger", "grace", "hedy", "katherine", "linus")
_POLL_SECONDS = 0.25
_REQUEST_SECONDS = 10.0


class Mix(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """SKUs with their weights: `book=8,flaky=1,forbidden=1`."""

    name = "mix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        """Returns the weight of each SKU."""
        if isinstance(value, dict):
            return value
        try:
            parts = [part.partition("=") for part in value.split(",")]
            mix = {sku.strip(): float(weight or 1) for sku, _, weight in parts}
        except ValueError:
            mix = {}
        if not all(mix) or not all(0 <= weight < math.inf for weight in mix.values()) or not sum(mix.values()):
            self.fail(f"{value!r} is not a mix: write book=8,flaky=1,forbidden=1", param, ctx)
        return mix


@dataclass(slots=True)
class Tally:
    """Counts of placed, refused and ended orders."""

    placed: int = 0
    refused: int = 0
    last_refusal: str = ""
    ended: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    waiting: deque[tuple[str, float]] = field(default_factory=deque)
    """Order ids with the time of their next poll, soonest first."""

    @property
    def open(self) -> int:
        """Number of orders that have not ended."""
        return self.placed - self.ended.total()


@click.command(cls=Command)
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="Address of the running service.")
@click.option("--rate", type=click.FloatRange(min=0.1, max=1000), default=5, show_default=True, help="Orders per second.")
@click.option("--duration", type=SECONDS, default="30", show_default=True, help="How long to place orders.")
@click.option("--mix", type=Mix(), default="book=8,flaky=1,forbidden=1", show_default=True, help="SKUs with their weights.")
@click.option("--wait", type=SECONDS, default="30", show_default=True, help="How long to wait for the last orders to end.")
def demo(url: str, rate: float, duration: timedelta, mix: dict[str, float], wait: timedelta) -> None:
    """Places orders at a running service and follows each until it is confirmed or rejected.

    The payment of the SKU flaky fails once and is retried. The SKU forbidden is rejected, and its event becomes a dead letter.
    """
    if find_spec("httpx") is None or find_spec("rich") is None:
        raise MissingExtraError(purpose="outbox demo", extra="demo")
    traffic = Traffic(url.rstrip("/"), rate, duration, mix, wait)
    try:
        tally = asyncio.run(traffic.run())
    except KeyboardInterrupt:
        tally = traffic.tally
    echo(f"placed     {tally.placed}")
    for status in ENDS.values():
        echo(f"{status:<10} {tally.ended[status]}")
    if tally.open:
        echo(f"still open {tally.open}")
    if tally.refused:
        echo(f"refused    {tally.refused}, last error: {tally.last_refusal}")
    if tally.seconds:
        ordered = sorted(tally.seconds)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        echo(f"latency    p50 {ordered[len(ordered) // 2]:.2f} s, p95 {p95:.2f} s, from order to last event")
    if tally.open or tally.refused:
        raise click.exceptions.Exit(1)


@dataclass(slots=True)
class Traffic:
    """Places orders at a steady rate and polls them until they have ended or the wait is over."""

    url: str
    rate: float
    duration: timedelta
    mix: dict[str, float]
    wait: timedelta
    tally: Tally = field(default_factory=Tally)

    async def run(self) -> Tally:
        """Runs the traffic and returns the tally. Raises `ConfigurationError` if no service responds at the URL."""
        import httpx

        limits = httpx.Limits(max_connections=MOST_CONNECTIONS)
        async with httpx.AsyncClient(base_url=self.url, timeout=_REQUEST_SECONDS, limits=limits) as client:
            try:
                answer = await client.get("/outbox/health/live")
            except (httpx.TransportError, httpx.InvalidURL) as error:
                raise ConfigurationError(
                    f"cannot reach {self.url} ({str(error) or type(error).__name__}): "
                    "start the service with `make run`, or give its address with --url"
                ) from error
            if not answer.is_success:
                raise ConfigurationError(
                    f"{self.url} is not the service (status {answer.status_code}): give its address with --url"
                )
            with _Progress(self.rate * self.duration.total_seconds()) as progress:
                async with asyncio.TaskGroup() as group:
                    placing = group.create_task(self._place_all(client, progress))
                    watchers = [group.create_task(self._watch(client, placing, progress)) for _ in range(WATCHERS)]
                    await placing
                    await asyncio.wait(watchers, timeout=self.wait.total_seconds())
                    for watcher in watchers:
                        watcher.cancel()
        return self.tally

    async def _place_all(self, client: "httpx.AsyncClient", progress: "_Progress") -> None:
        # Orders are scheduled by the clock, so that slow responses do not lower the rate while connections are free. Then
        # orders wait here: in the client, the time limit of one could pass as it gets a new connection, which would be lost.
        begin, number, free = time.monotonic(), 0, asyncio.Semaphore(MOST_CONNECTIONS - WATCHERS)
        async with asyncio.TaskGroup() as group:
            while (due := number / self.rate) < self.duration.total_seconds():
                await asyncio.sleep(begin + due - time.monotonic())
                await free.acquire()
                group.create_task(self._place(client, progress)).add_done_callback(lambda _: free.release())
                number += 1

    async def _place(self, client: "httpx.AsyncClient", progress: "_Progress") -> None:
        import httpx

        order = {
            "customer": f"{random.choice(_CUSTOMERS)}@example.com",  # noqa: S311 — no secrets here
            "sku": random.choices(list(self.mix), list(self.mix.values()))[0],  # noqa: S311
            "quantity": random.randint(1, 5),  # noqa: S311
        }
        try:
            answer = await client.post("/orders", json=order)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            self.tally.refused += 1
            self.tally.last_refusal = str(error) or type(error).__name__
        else:
            self.tally.placed += 1
            self._poll_later(answer.json()["id"])
        progress.show(self.tally)

    async def _watch(self, client: "httpx.AsyncClient", placing: "asyncio.Task[None]", progress: "_Progress") -> None:
        """Polls one order after another until all have ended."""
        # A watcher sleeps after each open order, which bounds the load of polling. Late polls do not distort the latencies,
        # because those are computed from timestamps of the service.
        while self.tally.open or not placing.done():
            if not self.tally.waiting or self.tally.waiting[0][1] > time.monotonic():
                await asyncio.sleep(_POLL_SECONDS / 5)
                continue
            id_, _ = self.tally.waiting.popleft()
            end = await _end_of(client, id_)
            if end is None:
                self._poll_later(id_)
                await asyncio.sleep(_POLL_SECONDS)
            else:
                status, seconds = end
                self.tally.ended[status] += 1
                self.tally.seconds.append(seconds)
                progress.show(self.tally)

    def _poll_later(self, id_: str) -> None:
        self.tally.waiting.append((id_, time.monotonic() + _POLL_SECONDS))


async def _end_of(client: "httpx.AsyncClient", id_: str) -> tuple[str, float] | None:
    """Returns the final status of an order, and the seconds from placing it to its last event, by the service's clock.

    None if the order is open or the service does not respond.
    """
    import httpx

    try:
        answer = await client.get(f"/orders/{id_}")
        answer.raise_for_status()
    except httpx.HTTPError:
        return None
    order = answer.json()
    for event in order["events"]:
        status = ENDS.get(event["event"])
        if status is not None:
            placed, ended = (datetime.fromisoformat(text) for text in (order["placed_at"], event["at"]))
            return status, (ended - placed).total_seconds()
    return None


class _Progress:
    """A progress bar of placed orders, with the number that have ended."""

    def __init__(self, expected: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f} placed"),
            TextColumn("{task.fields[ended]}"),
            TimeElapsedColumn(),
        )
        self._task = self._progress.add_task("orders", total=max(1, int(expected)), ended="")

    def __enter__(self) -> "_Progress":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, tally: Tally) -> None:
        """Updates the bar."""
        ended = ", ".join(f"{tally.ended[status]} {status}" for status in ENDS.values())
        self._progress.update(self._task, completed=tally.placed + tally.refused, ended=ended)
