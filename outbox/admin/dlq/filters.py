"""Which dead letters a request means, as parameters of a list and as the body of a change."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from outbox.admin.inputs import Instant, Text
from outbox.admin.models import Request
from outbox.admin.paging import Paged
from outbox.dead_letters import DeadLetterFilter, DeadLetterStatus, GroupBy, Source

LARGEST_COUNT = 1_000_000


class DeadLetterFilters(Request):
    """What a dead letter must fit, all of it. Without `status` only those are meant that are open; `any` means every one."""

    source: Annotated[
        Source | None,
        Field(
            description="Who gave it up: `relay` could not send it, a `worker`'s handler failed, or the `broker` took it away."
        ),
    ] = None
    queue: Annotated[Text | None, Field(description="The queue that it died in.")] = None
    routing_key: Annotated[Text | None, Field(description="Its routing key, exactly.")] = None
    exception_type: Annotated[Text | None, Field(description="The type of the exception, with its module.")] = None
    group_id: Annotated[Text | None, Field(description="The fingerprint of its group, see `outbox_dlq_groups`.")] = None
    status: Annotated[
        Literal["open", "requeued", "discarded", "any"], Field(description="What somebody made of it; `open`: nothing yet.")
    ] = "open"
    tracking_id: Annotated[Text | None, Field(description="An id of its chain: its own, or of a message that led to it.")] = (
        None
    )
    message_id: Annotated[Text | None, Field(description="Its own id.")] = None
    failed_after: Annotated[Instant | None, Field(description="It died then or later.")] = None
    failed_before: Annotated[Instant | None, Field(description="It died before then.")] = None
    min_failures: Annotated[int | None, Field(ge=1, le=LARGEST_COUNT, description="So many attempts failed, or more.")] = None
    q: Annotated[
        Text | None, Field(min_length=1, description='Words of its error and masked body: words, "phrases", or, -not.')
    ] = None

    def as_filter(self) -> DeadLetterFilter:
        """The same, as the library takes it."""
        wanted = {name: getattr(self, name) for name in DeadLetterFilters.model_fields if name != "status"}
        return DeadLetterFilter(**wanted, status=None if self.status == "any" else DeadLetterStatus(self.status))

    def bound_to(self) -> Mapping[str, Any]:
        """What says which filter this is: two that mean the same are equal, whatever else a request asks for."""
        return {name: value for name in DeadLetterFilters.model_fields if (value := getattr(self, name)) is not None}


class DeadLetterListParameters(DeadLetterFilters, Paged):
    """What `GET /dlq` takes."""

    sort: Annotated[Literal["newest", "oldest"], Field(description="By the time of death, the latest first or last.")] = (
        "newest"
    )
    facets: Annotated[bool, Field(description="Whether to count by source, status, queue, exception type and routing key.")] = (
        False
    )


class DeadLetterGroupsParameters(DeadLetterFilters):
    """What `GET /dlq/groups` takes."""

    by: Annotated[
        GroupBy, Field(description="What letters of one group have in common; a fingerprint is that of the error.")
    ] = "fingerprint"
    limit: Annotated[int, Field(ge=1, le=200, description="Most groups, the largest first.")] = 50
