"""`/metrics`: Prometheus metrics of the service, its relay and its worker. Public unless a token is set."""

import os
import secrets

from fastapi import Depends, FastAPI, HTTPException, Request, Response, status
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_fastapi_instrumentator import Instrumentator

from app.settings import Runs, Settings
from outbox.admin import measure_health

PATH = "/metrics"
_UNINTERESTING = (f"^{PATH}$", "^/outbox/health/", "^/outbox/(\\{outbox_name\\}/)?events$")
"""Endpoints that are excluded: polled constantly, or streaming without end, they would distort the request metrics."""


def install(app: FastAPI) -> None:
    """Counts requests and serves all metrics of the process."""
    Instrumentator(excluded_handlers=list(_UNINTERESTING), should_exclude_streaming_duration=True).instrument(app)
    before = [Depends(_require_token), Depends(_update_health)]
    app.get(PATH, include_in_schema=False, dependencies=before)(_metrics)


def _metrics(request: Request) -> Response:
    # Not the instrumentator's route, which knows the plain format only: exemplars are shown in OpenMetrics.
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry := CollectorRegistry())  # type: ignore[no-untyped-call]
    return Response(encode(registry), headers={"content-type": content_type})


async def _update_health(request: Request) -> None:
    # The health gauges are computed at each scrape, and only by processes that serve the API.
    if Runs.API in request.app.state.settings.run:
        await measure_health(request.app.state.admin)


async def _require_token(request: Request) -> None:
    settings: Settings = request.app.state.settings
    if not settings.metrics:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "metrics are turned off by OUTBOX_METRICS")
    if settings.metrics_token is None:
        return
    given = request.headers.get("authorization", "")
    expected = f"Bearer {settings.metrics_token.get_secret_value()}"
    if not secrets.compare_digest(given.encode(), expected.encode()):
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED, "metrics require the token of OUTBOX_METRICS_TOKEN", {"www-authenticate": "Bearer"}
        )
