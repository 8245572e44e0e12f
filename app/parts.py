"""Relay, worker, archiver and admin of the service, made from its settings."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from app import development
from app.settings import Runs, Settings
from app.startup import Installation
from outbox import MessageRelay, Worker
from outbox.admin import Admin, HealthThresholds
from outbox.archiver import Archiver
from outbox.core.urls import ServerKind, server_kind
from outbox.fastapi.supervision import Part
from outbox.maintenance import Maintenance
from outbox.masking import Masking
from outbox.runtime.consumers import load_consumers


def wanted_parts(installation: Installation) -> dict[str, Callable[[], Part | None]]:
    """What `OUTBOX_RUN` names in addition to the API, by name."""
    makers: dict[Runs, Callable[[Installation], Part | None]] = {
        Runs.RELAY: make_relay,
        Runs.WORKER: make_worker,
        Runs.ARCHIVER: make_archiver,
        Runs.MAINTAIN: make_maintenance,
    }
    return {str(run): partial(make, installation) for run, make in makers.items() if run in installation.settings.run}


def make_relay(installation: Installation) -> MessageRelay:
    """A relay from the outbox table to the broker."""
    settings = installation.settings
    return MessageRelay(
        db_engine_url=installation.database_url,
        broker=installation.broker_url,
        exchange_name=settings.exchange_name,
        table_name=settings.table_name,
        listen_url=None if settings.listen_url is None else settings.listen_url.get_secret_value(),
        batch_size=settings.batch_size,
        lanes=settings.lanes,
        publish_timeout=_seconds(settings.publish_timeout),
        max_attempts=settings.max_attempts,
        on_unroutable=settings.on_unroutable,
        ordering_policy=settings.ordering_policy,
        clean_up_after=settings.clean_up_after,
        expiration=settings.expiration,
        notification_timeout=_seconds(settings.notification_timeout),
        poll_interval=_seconds(settings.poll_interval),
        max_batch_bytes=settings.max_batch_bytes,
        max_body_bytes=settings.max_body_bytes,
        enable_metrics=settings.metrics,
        grace_period=_seconds(settings.grace_period),
        name=settings.name,
        reporting=settings.reporting,
        history=settings.history,
        heartbeat_interval=_seconds(settings.heartbeat_interval),
    )


def make_worker(installation: Installation) -> Worker | None:
    """A worker that runs the consumers of the settings; without any, none."""
    settings = installation.settings
    if settings.worker_consumers is None:
        return None
    return Worker(
        broker=installation.broker_url,
        db_engine_url=installation.database_url,
        table_name=settings.table_name,
        consumers=load_consumers(settings.worker_consumers),
        exchange_name=settings.exchange_name,
        retry_delays=[_seconds(delay) for delay in settings.retry_delays],
        prefetch_count=settings.prefetch_count,
        max_batch_bytes=settings.max_batch_bytes,
        max_body_bytes=settings.max_body_bytes,
        masking=masking_of(settings),
        enable_metrics=settings.metrics,
        grace_period=_seconds(settings.grace_period),
        name=settings.name,
        reporting=settings.reporting,
        history=settings.history,
        heartbeat_interval=_seconds(settings.heartbeat_interval),
    )


def make_maintenance(installation: Installation) -> Maintenance:
    """What keeps the tables small, and does operations."""
    settings = installation.settings
    kept, known = settings.dead_letter_retention, settings.audit_retention
    return Maintenance(
        db_engine_url=installation.database_url,
        broker=installation.broker_url,
        exchange_name=settings.exchange_name,
        table_name=settings.table_name,
        inbox_retention=settings.inbox_retention,
        history_retention=settings.history_retention,
        dead_letter_retention=kept if isinstance(kept, timedelta) else None,
        audit_retention=known if isinstance(known, timedelta) else None,
        enable_metrics=settings.metrics,
        grace_period=_seconds(settings.grace_period),
    )


def make_admin(installation: Installation) -> Admin:
    """What the admin's endpoints work with."""
    settings = installation.settings
    management = settings.management_url
    return Admin(
        db_engine_url=installation.database_url,
        broker=installation.broker_url,
        exchange_name=settings.exchange_name,
        table_name=settings.table_name,
        management_url=None if management is None else management.get_secret_value(),
        tokens=[str(development.token_entry())] if settings.development else settings.admin_tokens,
        read_only=settings.admin_read_only,
        session_lifetime=settings.admin_session_lifetime,
        body_limit=settings.admin_body_limit,
        streams=settings.admin_streams,
        streams_per_principal=settings.admin_streams_per_principal,
        reads_per_principal=settings.admin_reads_per_principal,
        masking=masking_of(settings),
        error_text=settings.admin_error_text,
        inbox_retention=settings.inbox_retention,
        history=settings.history,
        thresholds=HealthThresholds(
            late_after=settings.health_late_after,
            overdue_after=settings.health_overdue_after,
            queue_depth=settings.health_queue_depth,
            lost_for=settings.health_lost_for,
            dead_letter_window=settings.health_dead_letter_window,
        ),
    )


def make_archiver(installation: Installation) -> Archiver | None:
    """An archiver of dead letters; without RabbitMQ none, for then they are in the database already."""
    settings = installation.settings
    if not _archives(settings):
        return None
    return Archiver(
        db_engine_url=installation.database_url,
        broker=installation.broker_url,
        queues=settings.archive_queues,
        discover_every=_seconds(settings.archive_discover_every),
        max_batch_bytes=settings.max_batch_bytes,
        table_name=settings.table_name,
        masking=masking_of(settings),
        enable_metrics=settings.metrics,
        grace_period=_seconds(settings.grace_period),
        name=settings.name,
        reporting=settings.reporting,
        heartbeat_interval=_seconds(settings.heartbeat_interval),
    )


def masking_of(settings: Settings) -> Masking:
    """What this installation hides."""
    return Masking().also(*settings.mask_keys, paths=settings.mask_paths)


def names(settings: Settings) -> str:
    """What this process runs, in words."""
    words = {Runs.API: "API", Runs.RELAY: "relay", Runs.MAINTAIN: "maintenance"}
    if settings.worker_consumers is not None:
        words[Runs.WORKER] = "worker"
    if _archives(settings):
        words[Runs.ARCHIVER] = "archiver"
    return ", ".join(word for run, word in words.items() if run in settings.run)


def _archives(settings: Settings) -> bool:
    """Whether dead letters stay at a broker unless somebody takes them from there."""
    url = settings.broker_url
    return url is not None and server_kind(url.get_secret_value()) is ServerKind.AMQP


def _seconds(time: timedelta) -> float:
    return time.total_seconds()
