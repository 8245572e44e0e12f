"""How bodies are shown: as much of them as masking can read, or, revealed, as they are."""

from outbox.admin.dlq.models import Content
from outbox.masking import READ_LIMIT, Body, Masking, readable


def content(body: Body, masking: Masking | None) -> Content:
    """What is shown of `body`: masked, or, without a `masking`, everything up to `READ_LIMIT` bytes."""
    kind, text = readable(body, masking)
    return Content(
        content_type=body.content_type,
        size=body.size,
        encoding=kind,
        content=text,
        truncated=body.size > READ_LIMIT,
        masked=masking is not None and (text is None or text != readable(body, None)[1]),
    )
