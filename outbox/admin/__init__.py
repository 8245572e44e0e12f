"""Admin API and health checks of a running service, as routers for any FastAPI application. Needs the extra `fastapi`."""

from importlib.util import find_spec

from outbox.errors import MissingExtraError

if find_spec("fastapi") is None:
    raise MissingExtraError(purpose="outbox.admin", extra="fastapi")

from outbox.admin.admin import Admin, HealthThresholds
from outbox.admin.health import health_router
from outbox.admin.oidc import OpenIDConnect
from outbox.admin.principals import Principal, Role
from outbox.admin.router import admin_router
from outbox.admin.verdict.routes import measure_health

__all__ = ["Admin", "HealthThresholds", "OpenIDConnect", "Principal", "Role", "admin_router", "health_router", "measure_health"]
