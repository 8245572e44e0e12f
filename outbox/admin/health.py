"""Liveness and readiness: `GET /outbox/health/live` and `GET /outbox/health/ready`, without authentication."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, Depends, Response, status
from pydantic import BaseModel, ConfigDict

from outbox.admin.access import HeadRoute, provider_of
from outbox.admin.examples import example_of
from outbox.runtime.health import HealthChecks

PREFIX = "/outbox"
"""Path prefix of all routes, and of the dashboard, in an application."""


class Liveness(BaseModel):
    """The process answers."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    status: Literal["alive"] = "alive"


class Readiness(BaseModel):
    """State of each part of the process. The log has the reasons."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, Literal["ok", "unavailable"]]


def health_router(health: HealthChecks | Callable[..., Any]) -> APIRouter:
    """Returns the health endpoints, to be included without a prefix. `health` is the checks, or a dependency for them."""
    router = APIRouter(prefix=PREFIX)
    router.include_router(health_routes(health))
    return router


def health_routes(health: HealthChecks | Callable[..., Any]) -> APIRouter:
    """Returns the health endpoints below `/health`."""
    router = APIRouter(prefix="/health", tags=["health"], route_class=HeadRoute)
    find = provider_of(HealthChecks, health)

    @router.get(
        "/live",
        operation_id="outbox_health_live",
        summary="Check Liveness",
        openapi_extra=example_of("outbox_health_live", "GET"),
    )
    async def live() -> Liveness:
        """Returns 200 while the process responds. Checks nothing else."""
        return Liveness()

    @router.get(
        "/ready",
        operation_id="outbox_health_ready",
        summary="Check Readiness",
        responses={status.HTTP_503_SERVICE_UNAVAILABLE: {"model": Readiness}},
        openapi_extra=example_of("outbox_health_ready", "GET"),
    )
    async def ready(response: Response, checks: HealthChecks = Depends(find)) -> Readiness:  # noqa: B008
        """Returns 200 if the process is ready, or 503 with the parts that are unavailable."""
        report = await checks.report()
        response.headers["cache-control"] = "no-store"
        if not report.ready:
            response.status_code = status.HTTP_503_SERVICE_UNAVAILABLE
        return Readiness.model_validate(report.as_json())

    return router
