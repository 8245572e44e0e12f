"""`/metrics`: what the service, its relay and its worker count, for Prometheus. Open unless a token is set."""

import secrets

from fastapi import Depends, FastAPI, HTTPException, Request, status
from prometheus_fastapi_instrumentator import Instrumentator

from app.settings import Runs, Settings
from outbox.admin import measure_health

PATH = "/metrics"
_UNINTERESTING = (f"^{PATH}$", "^/outbox/health/", "^/outbox/events$")
"""Asked all the time, or answered without end: they would drown what the numbers are for."""


def install(app: FastAPI) -> None:
    """Counts requests, and serves all metrics of the process."""
    instrumentator = Instrumentator(excluded_handlers=list(_UNINTERESTING), should_exclude_streaming_duration=True)
    before = [Depends(_may_read), Depends(_judge)]
    instrumentator.instrument(app).expose(app, endpoint=PATH, include_in_schema=False, dependencies=before)


async def _judge(request: Request) -> None:
    """The gauges of the verdict are set when they are asked for; only the API's process judges."""
    if Runs.API in request.app.state.settings.run:
        await measure_health(request.app.state.admin)


def _may_read(request: Request) -> None:
    settings: Settings = request.app.state.settings
    if not settings.metrics:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "metrics are turned off: OUTBOX_METRICS")
    if settings.metrics_token is None:
        return
    given = request.headers.get("authorization", "")
    wanted = f"Bearer {settings.metrics_token.get_secret_value()}"
    if not secrets.compare_digest(given.encode(), wanted.encode()):
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED, "metrics need the token of OUTBOX_METRICS_TOKEN", {"www-authenticate": "Bearer"}
        )
