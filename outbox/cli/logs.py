"""Log formats: text or JSON, one line per event, with passwords of URLs and other secrets removed."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from outbox.core.tracking import get_tracking_ids
from outbox.core.urls import redacted
from outbox.masking import Masking
from outbox.observers.logging import FIELDS, LogFields

FORMATS = ("text", "json")
_COLOURS = {logging.WARNING: "\033[33m", logging.ERROR: "\033[31m", logging.CRITICAL: "\033[31m"}
_RESET = "\033[0m"
_MASKING = Masking()


class PlainFormatter(logging.Formatter):
    """`12:03:04 INFO    outbox: what happened`, coloured from WARNING on in a terminal.

    In a process that serves several databases: `12:03:04 INFO    outbox [database]: what happened`.
    """

    def __init__(self, *, colours: bool) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s%(of_database)s: %(message)s", datefmt="%H:%M:%S")
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        database = getattr(record, "database", None)
        record.of_database = "" if database is None else f" [{database}]"
        text = _masked(super().format(record), record)
        colour = _COLOURS.get(record.levelno) if self._colours else None
        return f"{colour}{text}{_RESET}" if colour else text


class JsonFormatter(logging.Formatter):
    """`{"time": …, "level": "INFO", "logger": "outbox", "message": "what happened", "event": "processed", …}`, on one line.

    Records that a handler logs get the tracking ids of its message, and the fields of `LogFields`.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage(), record),
        }
        for name in FIELDS:
            if (value := getattr(record, name, None)) is not None:
                entry[name] = _field(value, record)
        if "tracking_ids" not in entry and (chain := get_tracking_ids()):
            entry["tracking_ids"] = _field(chain, record)
        if record.exc_info:
            entry["exception"] = _masked(self.formatException(record.exc_info), record)
        if record.stack_info:
            entry["stack"] = _masked(self.formatStack(record.stack_info), record)
        return json.dumps(entry)


def configure_logging(level: str, format_: str = "text") -> None:
    """Sets the level of Outbox's loggers, and logs to standard error unless the process has configured logging."""
    for name in ("outbox", "app"):
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.addFilter(LogFields())
        handler.setFormatter(JsonFormatter() if format_ == "json" else PlainFormatter(colours=sys.stderr.isatty()))
        root.addHandler(handler)
        # aiormq logs every failed connection attempt as an error. Outbox itself logs each reason for an outage once.
        logging.getLogger("aiormq").setLevel(logging.DEBUG if level == "DEBUG" else logging.CRITICAL)


def _masked(text: str, record: logging.LogRecord) -> str:
    # Only warnings and errors quote message content, and masking costs more than formatting the line.
    return redacted(text) if record.levelno < logging.WARNING else _MASKING.masked_text(text)


def _field(value: Any, record: logging.LogRecord) -> Any:
    match value:
        case bool() | int() | float():
            return value
        case list() | tuple():
            return [_masked(str(each), record) for each in value]
    return _masked(str(value), record)
