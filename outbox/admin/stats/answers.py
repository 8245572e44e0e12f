"""Statistics as they are answered: columns, one value for each step."""

from typing import Annotated

from pydantic import Field

from outbox.admin.models import Model, Moment
from outbox.reporting.statistics import GroupBy

Counts = Annotated[list[int | None], Field(description="One for each step; null where nobody told anything.")]
Measures = Annotated[list[float | None], Field(description="One for each step; null where nothing was measured.")]


class Quantiles(Model):
    """What half, 95 % and 99 % of all did not exceed, as exactly as buckets tell, for each step; null where there were none."""

    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]


class SeriesAnswer(Model):
    """What happened, step by step, all processes together."""

    group: str | None = Field(
        description="The queue or routing key; null: everything. `(others)`: those that are not told apart."
    )
    created: Counts = Field(description="By the time of creation, counted when they were sent; not by queue.")
    sent: Counts = Field(description="By relays; not by queue.")
    processed: Counts
    failed: Counts = Field(description="Attempts, of which some were `retried` and some made a message `dead`.")
    retried: Counts
    dead: Counts
    duplicates: Counts
    backlog: Counts = Field(description="The highest that was measured; not by group.")
    oldest_age_seconds: Measures = Field(description="The highest age of the oldest due message; not by group.")
    latency_seconds: Quantiles = Field(description="Time in the outbox.")
    handling_seconds: Quantiles = Field(description="Time that a handler ran.")
    latency_buckets: list[list[int] | None] | None = Field(
        description="With `buckets=true`: how many by `bucket_bounds_seconds`."
    )
    handling_buckets: list[list[int] | None] | None = Field(description="With `buckets=true`.")


class StatsAnswer(Model):
    """Series over one time. All columns are as long as `starts_at`."""

    from_: Moment = Field(serialization_alias="from", description="Where the first step begins.")
    to: Moment = Field(description="Where the last step ends.")
    as_of: Moment
    step_seconds: int
    widened: str | None = Field(description="Why the step is longer than was asked for.")
    group_by: GroupBy
    starts_at: list[Moment]
    complete: list[bool] = Field(description="False for steps of which more may be told: the newest, as a rule.")
    bucket_bounds_seconds: list[float] = Field(description="Upper ends; one more bucket is for what took longer.")
    series: list[SeriesAnswer]
