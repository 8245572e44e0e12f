"""Settings of alerts: conditions, webhooks and quiet times; and the format of notifications."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal, Self, get_args
from urllib.parse import quote, urlencode, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from outbox.admin.models import MOST_COUNTED
from outbox.admin.verdict.findings import CODES
from outbox.errors import ConfigurationError

OwnCode = Literal["group_new", "group_reopened", "operation_ended"]
ALERT_CODES: tuple[str, ...] = (*CODES, *get_args(OwnCode))
"""Codes of all alerts: the findings of the verdict, and those that only alerts have."""
ALERT_ON = (
    "broker_unreachable",
    "outbox_late",
    "messages_parked",
    "queue_late",
    "no_relay",
    "no_worker",
    "component_lost",
    "dead_letters",
    *get_args(OwnCode),
)
"""Codes that raise alerts by default."""
MIN_SECRET_BYTES = 16
"""Minimum length of the secret that signs notifications."""
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook. `is_slack`: it takes the format of Slack, which compatible services understand too."""

    url: str
    is_slack: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `https://…` or `slack+https://…`. Raises `ConfigurationError`, without the URL: it may be a secret."""
        is_slack = text.startswith("slack+")
        url = text.removeprefix("slack+")
        try:
            parts = urlsplit(url)
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.fragment
        except ValueError:
            is_valid = False
        if not is_valid or not url.isprintable() or " " in url:
            raise ConfigurationError("a webhook of alerts must be a URL such as https://host/path or slack+https://host/path")
        return cls(url, is_slack)

    @property
    def target(self) -> str:
        """The host, and a hash that distinguishes URLs with the same host."""
        # Viewers see this instead of the URL, because paths of webhooks are secrets.
        return f"{urlsplit(self.url).hostname}#{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class QuietTime:
    """Hours of each day, in a time zone, during which only errors are sent."""

    begins: time
    ends: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `22:00-07:00 Europe/Berlin`; without a zone, in UTC. Raises `ConfigurationError`."""
        hours, _, zone_name = text.strip().partition(" ")
        try:
            begins, ends = (time.fromisoformat(part) for part in hours.split("-"))
            zone = ZoneInfo(zone_name.strip() or "UTC")
        except (ValueError, ZoneInfoNotFoundError, OSError):
            raise ConfigurationError(
                f"a quiet time must have the form 22:00-07:00 Europe/Berlin, with the name of a time zone, not {text!r}"
            ) from None
        if begins == ends or begins.tzinfo or ends.tzinfo:
            raise ConfigurationError(f"a quiet time must begin and end at different times of day, not {text!r}")
        return cls(begins, ends, zone)

    def end_of(self, now: datetime) -> datetime | None:
        """Returns when the quiet time that contains `now` ends; None if `now` is outside of it."""
        local = now.astimezone(self.zone)
        at, today = local.time(), local.date()
        crosses = self.ends < self.begins
        if not (at >= self.begins or at < self.ends if crosses else self.begins <= at < self.ends):
            return None
        day = today + timedelta(days=1) if crosses and at >= self.begins else today
        return datetime.combine(day, self.ends, self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition, or with `momentary` an event. `path` is the page of the dashboard that shows it."""

    code: str
    severity: Literal["info", "warning", "error"]
    summary: str
    subject_kind: str = ""
    subject: str = ""
    path: str = "/"
    since: datetime | None = None
    momentary: bool = False


class AlertRules:
    """Settings of alerts.

    `webhooks` are URLs, `https://…` or, for Slack, `slack+https://…`. Notifications to the former are signed with `secret`
    according to Standard Webhooks. `on` are codes of `ALERT_CODES`. An alert fires when its condition has held for `after`, and
    resolves when the condition has not held for `after`. More than `dead_letters_above` open dead letters raise an alert.
    During the `quiet` time only errors are sent; other alerts that are still open are sent afterwards. `dashboard_url` is the
    public URL of the dashboard, for links. Conditions are evaluated at the interval `every`. `timeout` limits a request to a
    webhook.

    Raises `ConfigurationError`, whose text never contains a URL of a webhook or the secret.
    """

    def __init__(
        self,
        webhooks: Iterable[str],
        *,
        secret: str | None = None,
        on: Iterable[str] = ALERT_ON,
        after: timedelta = timedelta(minutes=1),
        dead_letters_above: int = 0,
        quiet: str | None = None,
        dashboard_url: str | None = None,
        every: timedelta = timedelta(seconds=15),
        timeout: timedelta = timedelta(seconds=10),
    ) -> None:
        self.webhooks = {webhook.target: webhook for webhook in map(Webhook.parse, webhooks)}
        if not self.webhooks:
            raise ConfigurationError("alerts need at least one webhook")
        self._key = None if secret is None else _signing_key(secret)
        if self._key is None and not all(webhook.is_slack for webhook in self.webhooks.values()):
            raise ConfigurationError("webhooks need a secret for signatures, such as whsec_… (slack+https://… needs none)")
        self.codes = frozenset(on)
        if unknown := sorted(self.codes - set(ALERT_CODES)):
            raise ConfigurationError(f"unknown alert codes {', '.join(unknown)}: choose from {', '.join(ALERT_CODES)}")
        for name, value in (("after", after), ("every", every), ("timeout", timeout)):
            if value < timedelta(0) or (name != "after" and not value):
                raise ConfigurationError(f"{name} of alerts must be above 0, not {value}")
        # The verdict counts no further, so a higher limit would never be exceeded.
        if not 0 <= dead_letters_above < MOST_COUNTED:
            raise ConfigurationError(f"dead_letters_above must be from 0 to {MOST_COUNTED - 1:,}, not {dead_letters_above}")
        self.after, self.every, self.timeout = after, every, timeout
        self.dead_letters_above = dead_letters_above
        self.quiet = None if quiet is None else QuietTime.parse(quiet)
        if dashboard_url is not None and urlsplit(dashboard_url).scheme not in ("http", "https"):
            raise ConfigurationError(f"the dashboard's URL must begin with https://, not {dashboard_url!r}")
        self.dashboard_url = None if dashboard_url is None else dashboard_url.rstrip("/")

    def link(self, path: str) -> str:
        """Returns the URL of a page of the dashboard; empty if the dashboard's URL is not configured."""
        return "" if self.dashboard_url is None else f"{self.dashboard_url}{path}"

    def due(self, severity: str, now: datetime) -> datetime:
        """Returns when a notification with that severity may be sent."""
        if severity == "error" or self.quiet is None:
            return now
        return self.quiet.end_of(now) or now

    def request(self, webhook: Webhook, message_id: str, body: str, now: datetime) -> tuple[Mapping[str, str], bytes]:
        """Returns the headers and the content of a notification, signed at the time `now`."""
        content = body.encode()
        headers = {"content-type": "application/json", "user-agent": "fastapi-outbox"}
        if webhook.is_slack or self._key is None:
            return headers, content
        sent_at = str(int(now.timestamp()))
        signed = f"{message_id}.{sent_at}.".encode() + content
        signature = base64.b64encode(hmac.digest(self._key, signed, "sha256")).decode()
        return headers | {
            "webhook-id": message_id,
            "webhook-timestamp": sent_at,
            "webhook-signature": f"v1,{signature}",
        }, content


def _signing_key(secret: str) -> bytes:
    """Decodes the secret. Raises `ConfigurationError`, whose text omits the secret."""
    key = b""
    if _SECRET.fullmatch(secret):
        with suppress(ValueError):
            key = base64.b64decode(secret.removeprefix("whsec_"))
    if len(key) < MIN_SECRET_BYTES:
        raise ConfigurationError(f"the secret of alerts must be whsec_ followed by at least {MIN_SECRET_BYTES} bytes in base64")
    return key


def message(
    webhook: Webhook, event: Literal["fired", "resolved", "test"], facts: Mapping[str, Any], *, environment: str | None
) -> str:
    """Returns the body of a notification, in the format of the webhook. `facts` are the fields of the alert, as JSON values."""
    if not webhook.is_slack:
        body = {"type": f"outbox.alert.{event}", "timestamp": facts["at"], "data": {**facts, "environment": environment}}
        return json.dumps(body, ensure_ascii=False)
    icon = {"fired": {"error": "🔴", "warning": "🟠"}.get(str(facts["severity"]), "🔵"), "resolved": "🟢", "test": "🔔"}[event]
    where = f" [{_slack(environment)}]" if environment else ""
    text = f"{icon}{where} {'Resolved: ' if event == 'resolved' else ''}{_slack(str(facts['summary']))}"
    if facts["link"]:
        text += f" <{facts['link']}|Open>"
    return json.dumps({"text": text}, ensure_ascii=False)


def combined(bodies: Sequence[str]) -> str:
    """Returns the body of one notification to Slack in place of several."""
    return bodies[0] if len(bodies) == 1 else json.dumps({"text": "\n".join(json.loads(each)["text"] for each in bodies)})


def _slack(text: str) -> str:
    """Escapes Slack's markup: https://api.slack.com/reference/surfaces/formatting#escaping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_PROCESSES = ("relay", "worker", "archiver", "maintenance")


def path_of(code: str, kind: str, subject: str) -> str:
    """Returns the dashboard's page for a finding or an alert."""
    if code == "outbox_late":
        return "/messages?state=pending"
    if code.startswith("messages_"):
        return f"/messages?state={code.removeprefix('messages_')}"
    if code == "dead_letters":
        return "/dead-letters"
    if code.startswith("group_"):
        return f"/dead-letters/groups/{quote(subject, safe='')}"
    if code == "operation_ended":
        return f"/operations/{subject}"
    if kind == "queue" and subject:
        return f"/queues?{urlencode({'name': subject})}"
    return "/components" if code == "paused" or kind in _PROCESSES else "/topology"
