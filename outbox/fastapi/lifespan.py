"""A lifespan that checks the routes and runs relay, worker and the like, around or next to the application's own."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

from fastapi import FastAPI

from outbox.fastapi.routes import check_sessions
from outbox.fastapi.supervision import Part, supervised
from outbox.runtime.health import HealthChecks

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any] | None]]
MakePart = Callable[[FastAPI], Part | None]


def outbox_lifespan(
    lifespan: Lifespan | None = None,
    *,
    relay: MakePart | None = None,
    worker: MakePart | None = None,
    archiver: MakePart | None = None,
    maintainer: MakePart | None = None,
    get_session: Callable[..., Any] | None = None,
    health: HealthChecks | None = None,
    grace_period: timedelta = timedelta(seconds=30),
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, Any]]]:
    """A lifespan for `FastAPI(lifespan=…)` that runs these parts in the server's process, if they are given.

    Starting up fails if a route would get two sessions (`check_sessions`). A part that crashes is logged, made again and
    started again with growing pauses. When the server is asked to end, the parts are asked at once, not only when its last
    connection is closed.

    Args:
        lifespan: the application's own; entered first and left last, so that its pools are there for the parts. The state
            that it yields is kept.
        relay, worker, archiver, maintainer: called with the application at start, and again after a crash; None in return
            means: not here. The maintainer is a `Maintenance`.
        get_session: the session dependency to check the routes for, where the publishers are not made by `publisher_for`.
        health: reports how the parts are, under their names.
        grace_period: from the moment in which the server is asked to end; what still runs afterwards is cancelled.
    """
    given = {"relay": relay, "worker": worker, "archiver": archiver, "maintainer": maintainer}
    makers = {name: make for name, make in given.items() if make is not None}

    @asynccontextmanager
    async def combined(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        check_sessions(app, *([] if get_session is None else [get_session]))
        async with (
            nullcontext() if lifespan is None else lifespan(app) as state,
            supervised({name: partial(make, app) for name, make in makers.items()}, grace_period=grace_period, health=health),
        ):
            yield dict(state or {})

    return combined
