"""Messages of the outbox as lines of a list."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from outbox.admin.backlog.answers import ByState, Counted
from outbox.admin.inputs import Instant, Text
from outbox.admin.models import Model, Moment, Page
from outbox.admin.paging import Paged
from outbox.admin.store.backlog import MessageState
from outbox.admin.store.messages import MessageFilter
from outbox.chains.traces import moment
from outbox.masking import Masking, preview, sized

_UNBOUND = {"limit", "cursor", "total"}


class MessageListParameters(Paged):
    """What a message must fit, all of it. Without `state` all rows of the table are meant, the newest first."""

    state: Annotated[MessageState | None, Field(description="Where it is.")] = None
    routing_key: Annotated[Text | None, Field(description="Its routing key; with `*` at the end, how it begins.")] = None
    ordering_key: Annotated[Text | None, Field(description="Its ordering key; those of one are listed in their order.")] = None
    message_id: Annotated[Text | None, Field(description="Its own id.")] = None
    tracking_id: Annotated[Text | None, Field(description="Its id, or one of a message that it came of.")] = None
    target_queue: Annotated[Text | None, Field(description="The one queue that it is for.")] = None
    created_after: Annotated[Instant | None, Field(description="Written then or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Written before.")] = None

    def as_filter(self) -> MessageFilter:
        """The same for the database."""
        return MessageFilter(**{name: getattr(self, name) for name in type(self).model_fields if name not in _UNBOUND})

    def bound_to(self) -> Mapping[str, Any]:
        """What cursors of this list belong to."""
        return {"of": "messages", **self.model_dump(mode="json", exclude=_UNBOUND)}


class MessageLine(Model):
    """A message of the outbox, without its body."""

    id: str = Field(description="The number of its row, in the order of writing.")
    message_id: str | None = Field(description="The id that it keeps everywhere; null: made when it is sent.")
    root_id: str | None = Field(description="The id of the message that its chain began with.")
    state: MessageState
    routing_key: str
    target_queue: str | None = Field(description="The one queue that it is for, whatever is bound.")
    ordering_key: str | None
    dedup_key: str | None
    priority: int
    attempts: int = Field(description="Attempts to send it that were refused.")
    requeue_count: int
    last_error: str | None = Field(description="What the broker said last, or what the message waits for.")
    created_at: Moment | None = Field(description="Null for a time that no calendar holds.")
    due_at: Moment | None = Field(description="Null: not before something else happens.")
    held_at: Moment | None = Field(
        description="Since when it is unroutable or stalled; null: it is neither, or a release without such a time held it."
    )
    sent_at: Moment | None
    failed_at: Moment | None
    content_type: str | None
    size: int = Field(description="Bytes of the body.")
    preview: str = Field(description="The beginning of the body, masked; what else it is, and how large.")


class MessagePage(Page[MessageLine]):
    """Part of the list, with how many there are in each state."""

    states: ByState | None = Field(description="As in the backlog; null: not known yet.")
    sent_kept: Counted | None
    as_of: Moment | None = Field(description="When they were counted.")


def line_of(row: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """The fields of a line."""
    shown, size = row["shown"], row["size"]
    if shown is not None and row["last_error"] is not None:
        masking = masking.of_message(shown)
    return {
        **{name: row[name] for name in _AS_THEY_ARE},
        **{name: moment(row[name]) for name in ("created_at", "due_at", "held_at", "sent_at", "failed_at")},
        "id": str(row["id"]),
        "last_error": None if row["last_error"] is None else masking.error_type(row["last_error"]),
        "size": size,
        "preview": sized(row["content_type"], size) if shown is None else preview(shown, row["content_type"], masking),
    }


_AS_THEY_ARE = (
    "message_id",
    "root_id",
    "state",
    "routing_key",
    "target_queue",
    "ordering_key",
    "dedup_key",
    "priority",
    "attempts",
    "requeue_count",
    "content_type",
)
