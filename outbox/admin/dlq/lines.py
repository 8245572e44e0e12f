"""From a dead letter to the line that tells of it."""

from outbox.admin.dlq.models import DeadLetterLine
from outbox.admin.models import ErrorSummary
from outbox.dead_letters import DeadLetter
from outbox.masking import HIDDEN, Masking

LONGEST_MESSAGE = 500
"""Most characters of an error's message in a line."""


def line(letter: DeadLetter, masking: Masking) -> DeadLetterLine:
    """The line of `letter`, whose message and preview are masked already."""
    return DeadLetterLine(**values(letter, masking))


def values(letter: DeadLetter, masking: Masking) -> dict[str, object]:
    """The fields of that line."""
    return {
        name: getattr(letter, name) for name in DeadLetterLine.model_fields if name not in ("root_id", "error", "group_id")
    } | {
        "root_id": letter.tracking_ids[0] if letter.tracking_ids else None,
        "group_id": letter.fingerprint,
        "error": error_of(letter, masking),
    }


def error_of(letter: DeadLetter, masking: Masking) -> ErrorSummary:
    """What failed last."""
    message = HIDDEN if masking.hides_errors and letter.exception_message else letter.exception_message
    return ErrorSummary(
        type=masking.error_type(letter.exception_type),
        message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
    )
