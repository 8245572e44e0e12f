"""One dead letter on a terminal, masked or not."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from outbox.cli.dlq.tables import at, counted, echo_facts, echo_heading, indented, times
from outbox.cli.printing import echo, one_line, styled
from outbox.core.failures import FailedAttempt
from outbox.dead_letters import DeadLetterDetail, DeadLetterStatus
from outbox.masking import Body, Masking, readable

_BODY_LIMIT = 4_000
_HIDDEN = b"<hidden: too large, or of a kind that cannot be masked>"


def masked(detail: DeadLetterDetail, masking: Masking) -> DeadLetterDetail:
    """`detail` as the API shows it to who may not reveal anything."""
    masking = masking.of_message(detail.body, detail.headers, detail.properties)
    for edition in detail.editions:
        masking = masking.of_message(edition.body, edition.headers)
    return replace(
        detail,
        letter=replace(detail.letter, exception_type=masking.masked_text(detail.letter.exception_type)),
        body=_masked_body(detail.body, detail.letter.content_type, masking),
        headers=masking.masked(detail.headers),
        properties=masking.masked(detail.properties),
        failure=masking.failure(detail.failure),
        trail=[replace(failed, failure=masking.failure(failed.failure)) for failed in detail.trail],
        editions=[
            replace(
                edition,
                body=_masked_body(edition.body, edition.content_type, masking),
                headers=masking.masked(edition.headers),
            )
            for edition in detail.editions
        ],
    )


def echo_detail(detail: DeadLetterDetail, *, reveal: bool) -> None:
    """Prints all of it: who it is, what failed, what it carries."""
    letter = detail.letter
    echo(styled(f"Dead letter {letter.id}", bold=True), f", {letter.status}, given up by the {letter.source}")
    echo_facts(_facts(detail))
    echo_heading("Error")
    echo(indented(str(detail.failure)))
    if detail.failure.traceback:
        echo()
        echo(indented(detail.failure.traceback))
    if detail.trail:
        echo_heading(
            f"{counted(len(detail.trail), 'failure')} on record{', the first on top' if len(detail.trail) > 1 else ''}"
        )
        for failed in detail.trail:
            echo(f"  {_attempt(failed)}")
    if detail.headers:
        echo_heading("Headers")
        echo(indented(_pretty(detail.headers)))
    echo_heading("Body" if reveal else "Body, masked (--reveal shows it all)")
    echo(indented(_body_text(detail)))


def _facts(detail: DeadLetterDetail) -> list[tuple[str, str]]:
    letter = detail.letter
    return [
        ("queue", letter.queue),
        ("routing key", letter.routing_key),
        ("message id", letter.message_id or "none"),
        ("chain", " → ".join(letter.tracking_ids) if len(letter.tracking_ids) > 1 else ""),
        ("ordering key", letter.ordering_key or ""),
        ("content type", f"{letter.content_type or 'unknown'}, {letter.size:,} bytes"),
        ("created", at(letter.created_at)),
        ("first failed", at(letter.first_failed_at) if at(letter.first_failed_at) != at(letter.failed_at) else ""),
        ("failed", at(letter.failed_at)),
        ("cause", f"{letter.cause}, in attempt {letter.attempt}"),
        ("worker", letter.worker),
        ("history", _history(detail)),
        ("group", letter.fingerprint),
        ("version", f"{letter.version}" + (f", of which {len(detail.editions)} replaced" if detail.editions else "")),
        (_resolved(letter.status), _resolution(detail) if letter.resolved_at else ""),
    ]


def _resolved(status: DeadLetterStatus) -> str:
    """What a person did last; an open one that says so was requeued, and came back."""
    return DeadLetterStatus.REQUEUED if status is DeadLetterStatus.OPEN else status


def _history(detail: DeadLetterDetail) -> str:
    letter = detail.letter
    if letter.requeue_count == 0 and letter.deaths == 1:
        return ""
    return f"died {times(letter.deaths)}, requeued {times(max(letter.requeue_count, letter.deaths - 1))}"


def _resolution(detail: DeadLetterDetail) -> str:
    letter = detail.letter
    by = f" by {letter.resolved_by}" if letter.resolved_by else ""
    return f"{at(letter.resolved_at)}{by}{f': {letter.resolution}' if letter.resolution else ''}"


def _attempt(failed: FailedAttempt) -> str:
    worker = f"  [{failed.failure.worker}]" if failed.failure.worker else ""
    bare = replace(failed.failure, traceback="")
    return f"{failed.at.astimezone():%Y-%m-%d %H:%M:%S}  attempt {failed.attempt}  {one_line(str(bare))}{worker}"


def _body_text(detail: DeadLetterDetail) -> str:
    as_it_is = f"`outbox dlq show {detail.letter.id} --body`"
    try:
        text = detail.body.decode()
    except UnicodeDecodeError:
        return f"<{len(detail.body):,} bytes that are no text: {as_it_is} prints them>"
    with suppress(ValueError, RecursionError):
        text = _pretty(json.loads(text))
    if len(text) <= _BODY_LIMIT:
        return text or "<empty>"
    return f"{text[:_BODY_LIMIT]}\n… and {len(text) - _BODY_LIMIT:,} more characters: {as_it_is} prints them"


def _pretty(value: Mapping[str, Any] | Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _masked_body(body: bytes, content_type: str | None, masking: Masking) -> bytes:
    _, text = readable(Body(body, content_type, len(body)), masking)
    return _HIDDEN if text is None else text.encode()
