"""Log lines for people: one line an event, time first, without the passwords of any URL and what else is secret."""

import logging
import sys

from outbox.masking import Masking
from outbox.urls import redacted

_COLOURS = {logging.WARNING: "\033[33m", logging.ERROR: "\033[31m", logging.CRITICAL: "\033[31m"}
_RESET = "\033[0m"
_MASKING = Masking()


class PlainFormatter(logging.Formatter):
    """`12:03:04 INFO    outbox: what happened`, coloured from WARNING on if a terminal shows it."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S")
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # Only problems quote what a message carries, and looking for it in every line would cost more than the line.
        text = redacted(text) if record.levelno < logging.WARNING else _MASKING.masked_text(text)
        colour = _COLOURS.get(record.levelno) if self._colours else None
        return f"{colour}{text}{_RESET}" if colour else text


def configure_logging(level: str) -> None:
    """Our own loggers at `level`, on standard error, unless the process has set up logging already."""
    for name in ("outbox", "app"):
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(PlainFormatter(colours=sys.stderr.isatty()))
        root.addHandler(handler)
        # It reports each attempt to connect as an error; ours say once that a broker is away, and when it is back.
        logging.getLogger("aiormq").setLevel(logging.DEBUG if level == "DEBUG" else logging.CRITICAL)
