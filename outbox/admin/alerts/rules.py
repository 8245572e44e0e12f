"""What alerts are about, where they go, and when: the settings of alerts, and the messages that follow from them."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal, Self, get_args
from urllib.parse import quote, urlencode, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from outbox.admin.verdict.findings import CODES
from outbox.errors import ConfigurationError

OwnCode = Literal["group_new", "group_reopened", "operation_ended"]
ALERT_CODES: tuple[str, ...] = (*CODES, *get_args(OwnCode))
"""What an alert can be about: each finding of the verdict, and what no finding names."""
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
"""What alerts are about unless they are configured."""
LEAST_SECRET = 16
"""Bytes of the shortest secret that signs messages."""
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where messages go. `is_slack`: in the form that Slack and those compatible with it take."""

    url: str
    is_slack: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `https://…`, or `slack+https://…`. Raises `ConfigurationError`, without the address: it may be a secret."""
        is_slack = text.startswith("slack+")
        url = text.removeprefix("slack+")
        try:
            parts = urlsplit(url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.fragment
        except ValueError:
            fits = False
        if not fits or not url.isprintable() or " " in url:
            raise ConfigurationError("a webhook for alerts is an address such as https://host/path, or slack+https://host/path")
        return cls(url, is_slack)

    @property
    def target(self) -> str:
        """What operators see of it: the host, and a mark by which two addresses differ. Paths of webhooks are secrets."""
        return f"{urlsplit(self.url).hostname}#{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class QuietTime:
    """Hours of each day in which only errors are sent, in a time zone."""

    begins: time
    ends: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `22:00-07:00 Europe/Berlin`; without a zone, UTC. Raises `ConfigurationError` for anything else."""
        hours, _, zone = text.strip().partition(" ")
        try:
            begins, ends = (time.fromisoformat(part) for part in hours.split("-"))
            known = ZoneInfo(zone.strip() or "UTC")
        except (ValueError, ZoneInfoNotFoundError, OSError):
            raise ConfigurationError(
                f"a quiet time is written as 22:00-07:00 Europe/Berlin, with the name of a time zone, not {text!r}"
            ) from None
        if begins == ends or begins.tzinfo or ends.tzinfo:
            raise ConfigurationError(f"a quiet time begins and ends at different times of the day, not {text!r}")
        return cls(begins, ends, known)

    def over(self, now: datetime) -> datetime | None:
        """When the quiet time that `now` is in ends; None outside of it."""
        here = now.astimezone(self.zone)
        at, today = here.time(), here.date()
        crosses = self.ends < self.begins
        if not (at >= self.begins or at < self.ends if crosses else self.begins <= at < self.ends):
            return None
        day = today + timedelta(days=1) if crosses and at >= self.begins else today
        return datetime.combine(day, self.ends, self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that is wrong, or has happened. `path` is where the dashboard shows it."""

    code: str
    severity: Literal["info", "warning", "error"]
    summary: str
    subject_kind: str = ""
    subject: str = ""
    path: str = "/"
    since: datetime | None = None
    momentary: bool = False


class AlertRules:
    """Which alerts are sent where, and when.

    `webhooks` are addresses, `https://…` or, for Slack, `slack+https://…`; messages to the former are signed with `secret`, as
    Standard Webhooks says. `on` are codes of `ALERT_CODES`. A condition is sent when it has held for `after`, and as resolved
    when it has not held for `after`. `dead_letters_above` is how many may be open before that is an alert. In the `quiet` time
    only errors are sent; what else still holds afterwards is sent then. `dashboard_url` is where people open the dashboard.
    Conditions are looked at every `every`; a webhook has `timeout` to answer.

    Raises `ConfigurationError` for what makes no sense, without showing an address or the secret.
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
        self._key = None if secret is None else _key_of(secret)
        if self._key is None and not all(webhook.is_slack for webhook in self.webhooks.values()):
            raise ConfigurationError(
                "alerts to webhooks are signed: give a secret such as whsec_… (slack+https://… needs none)"
            )
        self.codes = frozenset(on)
        if unknown := sorted(self.codes - set(ALERT_CODES)):
            raise ConfigurationError(f"no alert is called {', '.join(unknown)}: there are {', '.join(ALERT_CODES)}")
        for name, value in (("after", after), ("every", every), ("timeout", timeout)):
            if value < timedelta(0) or (name != "after" and not value):
                raise ConfigurationError(f"{name} of alerts is a time above 0, not {value}")
        if dead_letters_above < 0:
            raise ConfigurationError(f"dead_letters_above is 0 or more, not {dead_letters_above}")
        self.after, self.every, self.timeout = after, every, timeout
        self.dead_letters_above = dead_letters_above
        self.quiet = None if quiet is None else QuietTime.parse(quiet)
        if dashboard_url is not None and urlsplit(dashboard_url).scheme not in ("http", "https"):
            raise ConfigurationError(f"the dashboard's address begins with https://, unlike {dashboard_url!r}")
        self.dashboard_url = None if dashboard_url is None else dashboard_url.rstrip("/")

    def link(self, path: str) -> str:
        """Where people look at it; empty where the dashboard's address is not known."""
        return "" if self.dashboard_url is None else f"{self.dashboard_url}{path}"

    def due(self, severity: str, now: datetime) -> datetime:
        """When a message of that severity may be sent."""
        if severity == "error" or self.quiet is None:
            return now
        return self.quiet.over(now) or now

    def request(self, webhook: Webhook, message_id: str, body: str, now: datetime) -> tuple[Mapping[str, str], bytes]:
        """The headers and the content of a message, signed as of `now`."""
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


def _key_of(secret: str) -> bytes:
    """The bytes that sign. Raises `ConfigurationError`, without the secret."""
    key = b""
    if _SECRET.fullmatch(secret):
        with suppress(ValueError):
            key = base64.b64decode(secret.removeprefix("whsec_"))
    if len(key) < LEAST_SECRET:
        raise ConfigurationError(f"the secret of alerts is whsec_ and at least {LEAST_SECRET} bytes in base64")
    return key


def message(
    webhook: Webhook, event: Literal["fired", "resolved", "test"], facts: Mapping[str, Any], *, environment: str | None
) -> str:
    """The body of a message, in the form that the webhook takes. `facts` are those of the alert, as JSON holds them."""
    if not webhook.is_slack:
        body = {"type": f"outbox.alert.{event}", "timestamp": facts["at"], "data": {**facts, "environment": environment}}
        return json.dumps(body, ensure_ascii=False)
    mark = {"fired": {"error": "🔴", "warning": "🟠"}.get(str(facts["severity"]), "🔵"), "resolved": "🟢", "test": "🔔"}[event]
    where = f" [{_slack(environment)}]" if environment else ""
    text = f"{mark}{where} {'Resolved: ' if event == 'resolved' else ''}{_slack(str(facts['summary']))}"
    if facts["link"]:
        text += f" <{facts['link']}|Open>"
    return json.dumps({"text": text}, ensure_ascii=False)


def _slack(text: str) -> str:
    """Without what Slack takes for markup: https://api.slack.com/reference/surfaces/formatting#escaping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_PROCESSES = ("relay", "worker", "archiver", "maintenance")


def path_of(code: str, kind: str, subject: str) -> str:
    """Where the dashboard shows what a finding is about."""
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
