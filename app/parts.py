"""Builds the relay, worker, archiver, maintenance and admin of the service from its settings."""

from collections.abc import Callable
from functools import partial
from typing import Any

from app import development
from app.settings import Runs, Servers, Settings
from app.startup import Installation
from outbox import MessageRelay, Worker
from outbox.admin import Admin, HealthThresholds
from outbox.admin.alerts import Alerting
from outbox.archiver import Archiver
from outbox.core.urls import ServerKind, server_kind
from outbox.maintenance import Maintenance
from outbox.runtime.consumers import load_consumers
from outbox.runtime.settings import arguments_of
from outbox.runtime.supervision import Part


def component_factories(installation: Installation) -> dict[str, Callable[[], Part | None]]:
    """Returns a factory for each component of `OUTBOX_RUN` except the API, by name."""
    makers: dict[Runs, Callable[[Installation], Part | None]] = {
        Runs.RELAY: make_relay,
        Runs.WORKER: make_worker,
        Runs.ARCHIVER: make_archiver,
        Runs.MAINTAIN: make_maintenance,
    }
    return {str(run): partial(make, installation) for run, make in makers.items() if run in installation.settings.run}


def make_relay(installation: Installation) -> MessageRelay:
    given = arguments_of(MessageRelay, dict(installation.settings))
    return MessageRelay(db_engine_url=installation.database_url, broker=installation.broker_url, **given)


def make_worker(installation: Installation) -> Worker | None:
    """Builds the worker; None without consumers."""
    settings = installation.settings
    if settings.worker_consumers is None:
        return None
    given = arguments_of(Worker, dict(settings) | {"consumers": load_consumers(settings.worker_consumers)})
    return Worker(db_engine_url=installation.database_url, broker=installation.broker_url, **given)


def make_maintenance(installation: Installation) -> Maintenance:
    # OUTBOX_NAME names relay, worker and archiver only.
    given = arguments_of(Maintenance, dict(installation.settings) | {"name": None})
    return Maintenance(db_engine_url=installation.database_url, broker=installation.broker_url, **given)


def make_admins(installation: Installation) -> dict[str, Admin]:
    """Builds the admins of this service's outbox, which comes first, and of those of `OUTBOX_ADMIN_DATABASES`, by name.

    All have the service's masking, limits and thresholds. The service's environment and alerts are for its own outbox only.
    """
    settings = installation.settings
    own = make_admin(installation)
    others = settings.other_outboxes
    return {settings.admin_outbox_name: own} | {name: _make_other(settings, name, others[name]) for name in others}


def make_admin(installation: Installation) -> Admin:
    settings = installation.settings
    return Admin(
        db_engine_url=installation.database_url,
        broker=installation.broker_url,
        alerts=settings.alert_rules,
        **_admin_arguments(settings, settings.admin_outbox_name),
    )


def _make_other(settings: Settings, name: str, servers: Servers) -> Admin:
    own = {"management_url": servers.management_url, "environment": None}
    return Admin(db_engine_url=servers.database_url, broker=servers.broker_url, **(_admin_arguments(settings, name) | own))


def _admin_arguments(settings: Settings, outbox: str) -> dict[str, Any]:
    tokens = [str(development.token_entry())] if settings.development else settings.tokens_of(outbox)
    thresholds = HealthThresholds(
        late_after=settings.health_late_after,
        overdue_after=settings.health_overdue_after,
        queue_depth=settings.health_queue_depth,
        lost_for=settings.health_lost_for,
        dead_letter_window=settings.health_dead_letter_window,
    )
    oidc = settings.oidc if settings.admin_databases is None else settings.oidc_of(outbox)
    return arguments_of(Admin, dict(settings)) | {"tokens": tokens, "thresholds": thresholds, "oidc": oidc}


def make_alerting(admin: Admin) -> Alerting | None:
    """Builds the sender of alerts; None without webhooks."""
    return None if admin.alerts is None else Alerting(admin, admin.alerts)


def make_archiver(installation: Installation) -> Archiver | None:
    """Builds the archiver; None without RabbitMQ, because dead letters are in the database then."""
    if not _needs_archiver(installation.settings):
        return None
    given = arguments_of(Archiver, dict(installation.settings))
    return Archiver(db_engine_url=installation.database_url, broker=installation.broker_url, **given)


def component_names(settings: Settings) -> str:
    """Lists the components of this process."""
    words = {Runs.API: "API", Runs.RELAY: "relay", Runs.MAINTAIN: "maintenance"}
    if settings.worker_consumers is not None:
        words[Runs.WORKER] = "worker"
    if _needs_archiver(settings):
        words[Runs.ARCHIVER] = "archiver"
    return ", ".join(word for run, word in words.items() if run in settings.run)


def _needs_archiver(settings: Settings) -> bool:
    """Whether dead letters stay at RabbitMQ until an archiver moves them."""
    url = settings.broker_url
    return url is not None and server_kind(url.get_secret_value()) is ServerKind.AMQP
