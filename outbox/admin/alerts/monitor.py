"""`Alerting`: raises alerts from the verdict, groups and operations, and sends them to webhooks, in one process at a time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from outbox.admin.admin import Admin
from outbox.admin.alerts.rules import Alert, AlertRules, Webhook, combined, message, path_of
from outbox.admin.dlq.routes import Letters
from outbox.admin.verdict.routes import VerdictView
from outbox.core.codec import encode_instant
from outbox.core.urls import redacted
from outbox.dead_letters import DeadLetterFilter
from outbox.dead_letters.reader import GroupStatus
from outbox.engine.lifecycle import GRACE_PERIOD, Stopping, run_until_stopped
from outbox.errors import DatabaseUnavailableError, MissingExtraError
from outbox.postgres.pool import Connection
from outbox.postgres.pruning import PostgresLease
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names
from outbox.runtime.observing import component_name
from outbox.runtime.tracer import silenced

if TYPE_CHECKING:
    import httpx

LEASE = timedelta(seconds=60)
"""How long after a crash of the active process another one takes over."""
RETRIES = tuple(timedelta(seconds=each) for each in (5, 30, 120, 600, 1_800, 7_200))
"""Delay after each failed attempt to send a notification. After the last one it is not sent again."""
SEND_LEASE = timedelta(minutes=2)
"""How long a notification that is being sent is hidden from other processes."""
BATCH_SIZE = 10
NEW_FOR = timedelta(hours=1)
"""A group is new if its first failure is at most this old. Operations that ended longer ago raise no alert."""
LONGEST_ERROR = 300
_log = logging.getLogger("outbox")


class Alerting:
    """Monitors the installation of an open `admin`, and sends alerts, until it is stopped.

    Any number of processes may run it: one holds the lease and works, the others stand by. While the database is unavailable,
    no alert is raised or sent. Raises `MissingExtraError` if httpx is not installed.
    """

    def __init__(self, admin: Admin, rules: AlertRules) -> None:
        self._admin = admin
        self._rules = rules
        self._sender = Sender(rules, admin.environment.name if admin.environment else None)
        self._sql = queries("alerts.sql", **satellite_names(admin.table.schema))
        self._holds_since: dict[tuple[str, str, str], datetime] = {}
        self._stopping = Stopping()

    async def run(self, *, handle_signals: bool = True) -> None:
        """Runs until `stop()`, SIGINT or SIGTERM."""
        await run_until_stopped(silenced(self._work), self._stopping, grace_period=GRACE_PERIOD, handle_signals=handle_signals)

    def stop(self) -> None:
        """Asks `run` to return. May be called more than once."""
        self._stopping.request()

    async def _work(self, stopping: Stopping) -> None:
        lease = PostgresLease(self._admin.pool, self._admin.table, duty="alerts", holder=component_name(None), lasts=LEASE)
        problem = ""
        async with self._sender.open():
            while not stopping.requested:
                try:
                    if await lease.hold():
                        await self.evaluate()
                        await self.send()
                    problem = ""
                except (DatabaseUnavailableError, TimeoutError) as error:
                    # The same problem recurs at every interval, and is logged once.
                    if str(error) != problem:
                        problem = str(error)
                        _log.warning("alerts could not be evaluated: %s", problem)
                await stopping.wait(self._rules.every)
            # A lease that cannot be released expires.
            try:
                await lease.release()
            except DatabaseUnavailableError:
                return

    async def evaluate(self) -> None:
        """Raises an alert for each condition that has held for long enough, and resolves alerts whose condition has ended."""
        rules, now = self._rules, datetime.now(UTC)
        found = await self._conditions()
        keys = {(each.code, each.subject_kind, each.subject): each for each in found}
        # Conditions that have ended drop out, so that one that comes and goes does not add up to an alert.
        self._holds_since = {key: self._holds_since.get(key, each.since or now) for key, each in keys.items()}
        async with self._admin.changing("raising alerts") as connection:
            raised = []
            for key, each in keys.items():
                if (
                    each.momentary
                    or now - self._holds_since[key] >= rules.after
                    # After a restart nothing is known about the past: an alert that is open stays open.
                    or await connection.fetchval(self._sql["is_open"], each.code, each.subject_kind, each.subject)
                ):
                    raised.append(await self._raise(connection, each, now))
            await self._resolve(connection, raised, now)

    async def send(self) -> int:
        """Sends the notifications that are due. Returns their number."""
        total = 0
        while True:
            # Committed before sending: no transaction stays open during a request to a webhook.
            async with self._admin.changing("taking notifications that are due") as connection:
                due = await connection.fetch(self._sql["take"], SEND_LEASE, BATCH_SIZE)
            if not due:
                return total
            requests: dict[object, list[Mapping[str, Any]]] = {}
            for row in sorted(due, key=lambda row: row["id"]):
                webhook = self._rules.webhooks.get(row["target"])
                # One message for all in a chat, which takes few messages a second, and where forty would fill the screen.
                requests.setdefault(row["target"] if webhook and webhook.is_slack else row["id"], []).append(dict(row))
            # All are awaited before an error is raised: each must record its result, or it would be sent twice.
            for failure in await asyncio.gather(*map(self._send, requests.values()), return_exceptions=True):
                if isinstance(failure, BaseException):
                    raise failure
            total += len(due)

    async def _send(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Sends the notifications in one request, which only Slack takes for more than one, and records the result of each."""
        target, first = rows[0]["target"], rows[0]
        webhook = self._rules.webhooks.get(target)
        name = f"alert-{first['alert_id']}-{first['event']}"
        problem, is_final = "the webhook is no longer configured", True
        if webhook is not None:
            problem, is_final = await self._sender.send(webhook, name, combined([row["body"] for row in rows]))
        # After the request: if this process dies in between, the lease ends, and the notification is sent twice, never lost.
        async with self._admin.changing("recording the result of a notification") as connection:
            for row in rows:
                if not problem:
                    await connection.execute(self._sql["sent"], row["id"])
                    continue
                delay = None if is_final or row["attempts"] > len(RETRIES) else RETRIES[row["attempts"] - 1]
                await connection.execute(self._sql["failed"], row["id"], problem, delay)
                next_step = "not retrying" if delay is None else f"retrying in {delay.total_seconds():g} s"
                _log.warning("an alert could not be sent to %s, %s: %s", target, next_step, problem)

    async def _raise(self, connection: Connection, alert: Alert, now: datetime) -> int:
        link = self._rules.link(alert.path)
        [row] = await connection.fetch(
            self._sql["raise"],
            alert.code,
            alert.subject_kind,
            alert.subject,
            alert.severity,
            alert.summary,
            link,
            alert.since,
            alert.momentary,
        )
        alert_id: int = row["id"]
        # An alert that has become an error in a quiet time must not wait for its end.
        if row["is_new"] or (alert.severity == "error" and self._rules.quiet is not None):
            facts = {
                "id": str(alert_id),
                "code": alert.code,
                "severity": alert.severity,
                "summary": alert.summary,
                "subject_kind": alert.subject_kind,
                "subject": alert.subject,
                "started_at": None if alert.since is None else encode_instant(alert.since),
                "link": link,
                "at": encode_instant(row["fired_at"]),
            }
            if row["is_new"]:
                await self._deliver(connection, alert_id, "fired", facts, self._rules.due(alert.severity, now))
            else:
                await connection.execute(self._sql["hasten"], alert_id, *self._bodies("fired", facts))
        return alert_id

    async def _resolve(self, connection: Connection, raised: Sequence[int], now: datetime) -> None:
        resolved = await connection.fetch(self._sql["resolve"], self._rules.after, raised)
        sent = await connection.fetch(self._sql["withdraw"], [row["id"] for row in resolved]) if resolved else ()
        notified = {row["alert_id"] for row in sent}
        for row in resolved:
            # The verdict drops lost components after `lost_for`. That is no recovery, so it is not reported as one.
            since: datetime | None = row["since"]
            is_old = row["code"] == "component_lost" and since is not None and now - since >= self._admin.thresholds.lost_for
            # Recipients who never got the alert, for instance in a quiet time, need no notification of its end.
            if row["id"] not in notified or is_old:
                continue
            facts = {
                **{name: row[name] for name in ("code", "severity", "summary", "subject_kind", "subject", "link")},
                "id": str(row["id"]),
                "started_at": None if since is None else encode_instant(since),
                "at": encode_instant(row["resolved_at"]),
            }
            await self._deliver(connection, row["id"], "resolved", facts, self._rules.due(row["severity"], now))

    async def _deliver(
        self,
        connection: Connection,
        alert_id: int,
        event: Literal["fired", "resolved"],
        facts: Mapping[str, Any],
        due_at: datetime,
    ) -> None:
        await connection.execute(self._sql["deliver"], alert_id, event, *self._bodies(event, facts), due_at)

    def _bodies(self, event: Literal["fired", "resolved"], facts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Returns the targets, and the body for each."""
        webhooks = self._rules.webhooks
        return list(webhooks), [self._sender.body(webhook, event, facts) for webhook in webhooks.values()]

    # --- conditions ----------------------------------------------------------------------------------------------------

    async def _conditions(self) -> Sequence[Alert]:
        codes = self._rules.codes
        judgement = (await self._admin.shared(VerdictView).judgement()).value
        found = [
            Alert(
                code=each.code,
                severity="error" if each.severity == "error" else "warning",
                summary=each.summary,
                subject_kind=each.subject_kind,
                subject=each.subject,
                path=path_of(each.code, each.subject_kind, each.subject),
                since=each.since,
            )
            for each in judgement.verdict.findings
            if each.code in codes
            and (each.code != "dead_letters" or judgement.observed.letters.open.value > self._rules.dead_letters_above)
        ]
        if "group_new" in codes:
            found += await self._new_groups()
        if "group_reopened" in codes:
            found += await self._reopened_groups()
        if "operation_ended" in codes:
            found += await self._ended_operations()
        return found

    async def _new_groups(self) -> Sequence[Alert]:
        async with self._admin.reading("looking for new groups") as connection:
            groups = [row["fingerprint"] for row in await connection.fetch(self._sql["new_groups"], NEW_FOR)]
        return [
            Alert(
                code="group_new",
                severity="warning",
                summary=f"new failures{await self._describe(group)}",
                subject_kind="group",
                subject=group,
                path=path_of("group_new", "group", group),
                momentary=True,
            )
            for group in groups
        ]

    async def _reopened_groups(self) -> Sequence[Alert]:
        async with self._admin.reading("reading marks") as connection:
            marks = await self._admin.shared(Letters).marks.all(connection)
        found = []
        for group, mark in marks.items():
            if mark.status is not GroupStatus.REOPENED:
                continue
            status = f"fixed in {mark.fixed_in}" if mark.fixed_in else mark.marked_as.value
            found.append(
                Alert(
                    code="group_reopened",
                    severity="error",
                    summary=f"failures that were marked as {status} occur again{await self._describe(group)}",
                    subject_kind="group",
                    subject=group,
                    path=path_of("group_reopened", "group", group),
                    since=mark.since_at,
                )
            )
        return found

    async def _describe(self, group: str) -> str:
        """Returns the queue and the error of a group, masked, because a chat channel may have many readers."""
        groups = await self._admin.shared(Letters).listing.groups(filter_=DeadLetterFilter(group_id=group), limit=1)
        if not groups:
            return ""
        queue = f" in the queue {groups[0].queue!r}" if groups[0].queue else ""
        return f"{queue}: {self._admin.masking.error_type(groups[0].title)}"

    async def _ended_operations(self) -> Sequence[Alert]:
        async with self._admin.reading("looking for operations that ended") as connection:
            rows = await connection.fetch(self._sql["ended_operations"], NEW_FOR)
        return [
            Alert(
                code="operation_ended",
                severity="error" if row["state"] == "stopped" else "info",
                summary=f"operation {row['id']} ({row['action']} of {row['total']:,} dead letters"
                + (f", by {row['requested_by']}" if row["requested_by"] else "")
                + f") {'stopped by itself' if row['state'] == 'stopped' else row['state']}"
                + (f": {row['stopped_because']}" if row["stopped_because"] else ""),
                subject_kind="operation",
                subject=row["id"],
                path=path_of("operation_ended", "operation", row["id"]),
                since=row["finished_at"],
                momentary=True,
            )
            for row in rows
        ]


_sending: ContextVar[bool] = ContextVar("outbox_sending_alert", default=False)


def _is_logged(_record: logging.LogRecord) -> bool:
    """Filters out the lines that httpx logs at INFO of our requests: they contain the address of the webhook."""
    return not _sending.get()


class Sender:
    """Posts notifications to webhooks. Does not follow redirects, and lets httpx log nothing."""

    def __init__(self, rules: AlertRules, environment: str | None) -> None:
        self._rules = rules
        self._environment = environment
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Opens the HTTP client for the block."""
        try:
            import httpx
        except ImportError:
            raise MissingExtraError(purpose="Sending alerts", extra="alerts") from None
        logging.getLogger("httpx").addFilter(_is_logged)  # one function, which is added once
        async with httpx.AsyncClient(timeout=self._rules.timeout.total_seconds()) as self._client:
            yield
        self._client = None

    def body(self, webhook: Webhook, event: Literal["fired", "resolved", "test"], facts: Mapping[str, Any]) -> str:
        """Returns the body of a notification for the webhook."""
        return message(webhook, event, facts, environment=self._environment)

    async def send(self, webhook: Webhook, message_id: str, body: str) -> tuple[str, bool]:
        """Posts a notification. Requires `open`.

        Returns the problem, empty on success; and whether the result is final, so that a retry is useless.
        """
        import httpx

        if self._client is None:
            raise RuntimeError("the sender is not open")
        headers, content = self._rules.request(webhook, message_id, body, datetime.now(UTC))
        token = _sending.set(True)
        try:
            async with asyncio.timeout(self._rules.timeout.total_seconds()):
                # A span would contain the address of the webhook, and this may run within a request.
                answer = await silenced(partial(self._client.post, webhook.url, headers=headers, content=content))()
        except TimeoutError:
            return f"no response within {self._rules.timeout.total_seconds():g} s", False
        # `InvalidURL` is not one of the others: a host with a character that no domain may have.
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Paths of webhooks are secrets, and the problem is shown to viewers.
            text = redacted(f"{type(error).__name__}: {error}".rstrip(": ")).replace(webhook.url, "the webhook")
            return text[:LONGEST_ERROR], False
        finally:
            _sending.reset(token)
        if answer.is_success:
            return "", True
        return f"status {answer.status_code}", answer.status_code == httpx.codes.GONE
