"""The ASGI application: routes, health and metrics, and the components that run in the same process."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

import outbox
from app import development, docs, metrics
from app.dependencies import get_session
from app.orders.routes import router as orders
from app.parts import component_factories, component_names, make_admins, make_alerting
from app.settings import Runs, Settings, read_settings
from app.startup import Installation, StepReporter, log_step, prepared, report_broker
from outbox import Publisher
from outbox.admin import Admin, admin_router, health_router
from outbox.admin.access import TAGS
from outbox.admin.health import PREFIX
from outbox.admin.ui import is_built
from outbox.cli.logs import configure_logging
from outbox.core.urls import postgres_url, redacted
from outbox.errors import OutboxError
from outbox.fastapi import check_sessions, supervised
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import HealthChecks, checking
from outbox.runtime.settings import encryption_of, large_bodies_of


class Service(FastAPI):
    """A FastAPI application that reports a failed start in one sentence instead of a traceback.

    It builds its OpenAPI document in a thread: that takes a second or two, in which its relay and worker go on.
    """

    _admin_routes: tuple[BaseRoute, ...] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._building = threading.Lock()

    def include_admin(self, admin: Callable[..., Any] | Mapping[str, Admin]) -> None:
        """Adds the routes of the admin, in place of those that are there."""
        others = [route for route in self.router.routes if route not in self._admin_routes]
        self.router.routes[:] = others
        self.include_router(admin_router(admin), prefix=PREFIX, dependencies=[Depends(_require_api)])
        self._admin_routes = tuple(route for route in self.router.routes if route not in others)
        self.openapi_schema = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.openapi_schema is None and scope["path"].endswith(str(self.openapi_url)):
            await run_in_threadpool(self.openapi)
        await super().__call__(scope, receive, self._shorten_failure(send) if scope["type"] == "lifespan" else send)

    def openapi(self) -> dict[str, Any]:
        """Returns the OpenAPI document, without the example if it does not run."""
        with self._building:
            document = super().openapi()
        settings: Settings | None = getattr(self.state, "settings", None)
        if settings is None or settings.runs_example:
            return document
        paths = {path: operations for path, operations in document["paths"].items() if not path.startswith(orders.prefix)}
        return {**document, "paths": paths, "tags": [tag for tag in document["tags"] if tag["name"] not in orders.tags]}

    def _shorten_failure(self, send: Send) -> Send:
        async def send_shortened(message: Message) -> None:
            if message["type"].endswith(".failed"):
                message = {**message, "message": self._failure(message["message"])}
            await send(message)

        return send_shortened

    def _failure(self, traceback: str) -> str:
        if isinstance(sys.exception(), asyncio.CancelledError):
            return "stopped immediately by a second signal"
        problem: str | None = getattr(self.state, "problem", None)
        return problem or redacted(traceback)


def create_service(
    settings: Settings | None = None,
    report: StepReporter = log_step,
    show_token: Callable[[str, str], None] = development.show_token,
) -> Service:
    """Creates the application. Without `settings`, it reads them from the environment when it starts.

    `report` is called with each startup step, and `show_token` with the admin token that development mode creates and the
    admin's path.
    """
    service = Service(
        title="Outbox",
        version=outbox.__version__,
        summary="Events that are published in the transaction of the business write.",
        docs_url=None,
        redoc_url=None,
        openapi_tags=[{"name": "orders", "description": "The example: orders, and the events that confirm them."}, *TAGS],
        lifespan=_Lifespan(settings, report, show_token),
    )
    docs.install(service)
    service.add_api_route("/", _redirect_root, include_in_schema=False)
    service.include_router(health_router(_health))
    service.include_router(orders, dependencies=[Depends(_require_api), Depends(_require_example)])
    # Before the admin's routes, which have no session of this application: FastAPI builds them when they are first requested.
    check_sessions(service, get_session)
    service.include_admin(_admin)
    metrics.install(service)
    return service


@dataclass(frozen=True, slots=True)
class _Lifespan:
    """Starts the service from its settings, and stops it."""

    settings: Settings | None
    report: StepReporter
    show_token: Callable[[str, str], None]

    def __call__(self, app: Service) -> AbstractAsyncContextManager[None]:
        return self._running(app)

    @asynccontextmanager
    async def _running(self, app: Service) -> AsyncIterator[None]:
        app.state.problem = None
        async with AsyncExitStack() as stack:
            stack.enter_context(freeze_gc())
            try:
                await self._start(app, stack)
            except OutboxError as error:
                app.state.problem = str(error)
                raise
            yield

    async def _start(self, app: Service, stack: AsyncExitStack) -> None:
        settings = self.settings or read_settings()
        configure_logging(settings.log_level, settings.log_format)
        installation = await stack.enter_async_context(prepared(settings, self.report))
        report_broker(installation, self.report)
        app.state.settings = settings
        values = dict(settings)
        app.state.publisher = Publisher(
            settings.expiration,
            settings.table_name,
            encryption=encryption_of(values),
            large_bodies=large_bodies_of(values),
        )
        app.state.sessions = await stack.enter_async_context(_sessions(installation))
        if Runs.API in settings.run:
            admins = make_admins(installation)
            for admin in admins.values():
                await stack.enter_async_context(admin)
            app.state.admin = admins[settings.admin_outbox_name]
            # Only now, because only the settings say whether there are several.
            app.include_admin(admins if settings.admin_databases is not None else _admin)
            if settings.development:
                self.show_token(development.token(), settings.admin_path)
        app.state.health = await stack.enter_async_context(_health_checks(installation))
        parts = component_factories(installation)
        if Runs.API in settings.run:
            parts["alerting"] = partial(make_alerting, app.state.admin)
        await stack.enter_async_context(supervised(parts, grace_period=settings.grace_period, health=app.state.health))
        self.report("Running", component_names(settings))


@asynccontextmanager
async def _sessions(installation: Installation) -> AsyncIterator[async_sessionmaker[AsyncSession]]:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        connect_args={"dsn": postgres_url(installation.database_url)},  # SQLAlchemy cannot parse a URL with several hosts
        pool_size=installation.settings.database_pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    try:
        # A session that is used after its commit, for example by a background task, raises instead of starting a transaction
        # that is never committed.
        yield async_sessionmaker(engine, expire_on_commit=False, close_resets_only=False)
    finally:
        await engine.dispose()


@asynccontextmanager
async def _health_checks(installation: Installation) -> AsyncIterator[HealthChecks]:
    # A process that only serves the API works without the broker, so it stays ready when the broker is unavailable.
    settings, health = installation.settings, HealthChecks()
    needs_broker = settings.run & {Runs.RELAY, Runs.WORKER, Runs.ARCHIVER, Runs.MAINTAIN}
    async with checking(
        health,
        database_url=installation.database_url,
        broker_url=installation.broker_url if needs_broker else None,
        exchange_name=settings.exchange_name,
        table_name=settings.table_name,
    ):
        yield health


async def _health(request: Request) -> HealthChecks:
    health: HealthChecks = request.app.state.health
    return health


async def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


async def _require_api(request: Request) -> None:
    if Runs.API not in request.app.state.settings.run:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "this process does not serve the API, see OUTBOX_RUN")


async def _require_example(request: Request) -> None:
    if not request.app.state.settings.runs_example:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "the example does not run here, see OUTBOX_EXAMPLE")


async def _redirect_root(request: Request) -> RedirectResponse:
    """Redirects to the dashboard, or else to the documentation or the health endpoint."""
    # Relative, so that it works behind a proxy that strips a prefix.
    if Runs.API in request.app.state.settings.run and is_built():
        return RedirectResponse(f".{development.DASHBOARD}")
    return RedirectResponse(f".{docs.PATH}" if docs.is_on(request.app) else f".{PREFIX}/health/ready")


main = create_service()
