"""The kinds of claims: lean ones follow full and plain ones, and never for long."""

from collections.abc import Sequence

from outbox.postgres.claiming import FAIR_EVERY, PriorityScheduler, UnkeyedBatch

LIMIT = 10


class Backlog:
    """Plain rows, and rows that lean claims skip; optionally with rows that have keys."""

    def __init__(self, plain: int, unusual: int = 0, *, keyed: bool = False) -> None:
        self.plain, self.unusual, self.keyed_due = plain, unusual, keyed
        self.scheduler = PriorityScheduler()
        self.claims: list[str] = []

    async def claim(self) -> int:
        return len(await self.scheduler.share(LIMIT, unkeyed=self.take, keyed=self.take_keyed))

    async def take(self, limit: int, *, fair: bool, lean: bool) -> UnkeyedBatch[str]:
        self.claims.append("lean" if lean else "fair" if fair else "whole")
        plain = min(limit, self.plain)
        unusual = 0 if lean else min(limit - plain, self.unusual)
        self.plain, self.unusual = self.plain - plain, self.unusual - unusual
        taken = ["row"] * (plain + unusual)
        return UnkeyedBatch(taken) if lean else UnkeyedBatch(taken, 0 if self.keyed_due else None, plain=not unusual)

    async def take_keyed(self, limit: int) -> Sequence[str]:
        self.claims.append("keyed")
        return ["keyed"] * limit


async def test_in_a_long_plain_backlog_only_the_fair_claims_look_for_others() -> None:
    backlog = Backlog(100)
    for _ in range(9):
        await backlog.claim()
    assert backlog.claims == ["whole", "lean", "lean", "fair", "lean", "lean", "lean", "fair", "lean"]


async def test_what_comes_during_such_a_backlog_is_found_by_the_next_fair_claim() -> None:
    backlog = Backlog(1000)
    await backlog.claim()
    backlog.keyed_due = True
    while "keyed" not in backlog.claims:
        await backlog.claim()
    assert len(backlog.claims) <= FAIR_EVERY + 1
    await backlog.claim()
    assert "lean" not in backlog.claims[FAIR_EVERY:]


async def test_a_lean_claim_that_is_not_full_is_the_last_and_an_empty_one_is_repeated_at_once() -> None:
    backlog = Backlog(15, unusual=5)
    assert [await backlog.claim() for _ in range(3)] == [10, 5, 5]
    assert backlog.claims == ["whole", "lean", "whole"]
    backlog = Backlog(10, unusual=5)
    assert [await backlog.claim() for _ in range(3)] == [10, 5, 0]
    assert backlog.claims == ["whole", "lean", "whole", "whole"]


async def test_where_unusual_rows_are_about_no_claim_is_lean() -> None:
    backlog = Backlog(5, unusual=100)
    for _ in range(7):
        await backlog.claim()
    assert "lean" not in backlog.claims
