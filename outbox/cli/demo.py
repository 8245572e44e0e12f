"""`outbox demo`: continuous traffic for the orders of a running service, and what became of it."""

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
"""The last event of an order, and what it has come to."""
WATCHERS = 4
_CUSTOMERS = ("ada", "alan", "barbara", "edsger", "grace", "hedy", "katherine", "linus")
_LOOK_AGAIN_SECONDS = 0.25
_REQUEST_SECONDS = 10.0


class Mix(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """Skus with their weights: `book=8,flaky=1,forbidden=1`."""

    name = "mix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        """The weight of each sku."""
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
    """What was placed, and what became of it."""

    placed: int = 0
    refused: int = 0
    last_refusal: str = ""
    ended: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    waiting: deque[tuple[str, float]] = field(default_factory=deque)
    """Order ids, and when to look at them, soonest first."""

    @property
    def open(self) -> int:
        """Orders that have not come to an end."""
        return self.placed - self.ended.total()


@click.command(cls=Command)
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="The running service.")
@click.option("--rate", type=click.FloatRange(min=0.1, max=1000), default=5, show_default=True, help="Orders a second.")
@click.option("--duration", type=SECONDS, default="30", show_default=True, help="How long to place orders.")
@click.option("--mix", type=Mix(), default="book=8,flaky=1,forbidden=1", show_default=True, help="Skus with their weights.")
@click.option("--wait", type=SECONDS, default="30", show_default=True, help="How long to wait for the last ones.")
def demo(url: str, rate: float, duration: timedelta, mix: dict[str, float], wait: timedelta) -> None:
    """Places orders at a running service and watches them to their end.

    The sku flaky fails its payment once and recovers; forbidden is rejected for good, and becomes a dead letter.
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
        echo(f"refused    {tally.refused}, the last one: {tally.last_refusal}")
    if tally.seconds:
        ordered = sorted(tally.seconds)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        echo(f"to the end half within {ordered[len(ordered) // 2]:.2f} s, 95 % within {p95:.2f} s")
    if tally.open or tally.refused:
        raise click.exceptions.Exit(1)


@dataclass(slots=True)
class Traffic:
    """Orders at a steady rate, watched until they have come to an end or the waiting is over."""

    url: str
    rate: float
    duration: timedelta
    mix: dict[str, float]
    wait: timedelta
    tally: Tally = field(default_factory=Tally)

    async def run(self) -> Tally:
        """Places, watches, and returns the tally. Raises `ConfigurationError` if there is no service at the URL."""
        import httpx

        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=self.url, timeout=_REQUEST_SECONDS, limits=limits) as client:
            try:
                answer = await client.get("/outbox/health/live")
            except (httpx.TransportError, httpx.InvalidURL) as error:
                raise ConfigurationError(
                    f"there is no service at {self.url} ({str(error) or type(error).__name__}): "
                    "start it with `make run`, or name it with --url"
                ) from error
            if not answer.is_success:
                raise ConfigurationError(f"{self.url} answers {answer.status_code}, and is not the service: name it with --url")
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
        """By the clock, not by pauses: a slow answer delays no later order."""
        begin, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while (due := number / self.rate) < self.duration.total_seconds():
                await asyncio.sleep(begin + due - time.monotonic())
                group.create_task(self._place(client, progress))
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
            self._look_later(answer.json()["id"])
        progress.show(self.tally)

    async def _watch(self, client: "httpx.AsyncClient", placing: "asyncio.Task[None]", progress: "_Progress") -> None:
        """Asks for one order after the other until all have ended.

        Who finds an order open pauses, so that looking is no burden: the more orders are open, the longer each waits for
        its turn. That makes no time longer, since times are the service's own.
        """
        while self.tally.open or not placing.done():
            if not self.tally.waiting or self.tally.waiting[0][1] > time.monotonic():
                await asyncio.sleep(_LOOK_AGAIN_SECONDS / 5)
                continue
            id_, _ = self.tally.waiting.popleft()
            end = await _end_of(client, id_)
            if end is None:
                self._look_later(id_)
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            else:
                self.tally.ended[end.status] += 1
                self.tally.seconds.append(end.seconds)
                progress.show(self.tally)

    def _look_later(self, id_: str) -> None:
        self.tally.waiting.append((id_, time.monotonic() + _LOOK_AGAIN_SECONDS))


@dataclass(frozen=True, slots=True)
class _End:
    """What an order has come to, and how long after it was placed its last event was handled, by the service's clock."""

    status: str
    seconds: float


async def _end_of(client: "httpx.AsyncClient", id_: str) -> _End | None:
    """The order's end; None if it is still to come, or the service does not answer."""
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
            return _End(status, (_time(event["at"]) - _time(order["placed_at"])).total_seconds())
    return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


class _Progress:
    """A bar that counts the orders that were placed, and says how many have ended."""

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
        """Moves the bar."""
        ended = ", ".join(f"{tally.ended[status]} {status}" for status in ENDS.values())
        self._progress.update(self._task, completed=tally.placed + tally.refused, ended=ended)
