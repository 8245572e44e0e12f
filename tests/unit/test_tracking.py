"""The causation chain of ids."""

import asyncio
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox import get_tracking_ids, tracking
from outbox.core.tracking import CHAIN_LIMIT, extend_chain, new_id, new_ids, shorten
from outbox.errors import ConfigurationError


def test_outside_of_any_chain_there_are_no_ids() -> None:
    assert get_tracking_ids() == ()
    (only,) = extend_chain()
    assert uuid.UUID(only).version == 4


def test_inside_of_a_chain_the_next_id_follows_the_others() -> None:
    with tracking(["root", "parent"]) as chain:
        assert chain == ("root", "parent")
        assert get_tracking_ids() == ("root", "parent")
        assert extend_chain("child") == ("root", "parent", "child")
    assert get_tracking_ids() == ()


def test_a_chain_begun_without_ids_has_a_root_of_its_own() -> None:
    with tracking() as (root,):
        assert get_tracking_ids() == (root,)
        assert uuid.UUID(root).version == 4


def test_chains_nest_and_end_even_with_an_error() -> None:
    with tracking(["outer"]):
        with pytest.raises(LookupError), tracking(["inner"]):
            raise LookupError
        assert get_tracking_ids() == ("outer",)


async def test_tasks_inherit_the_chain_and_do_not_share_it() -> None:
    async def publish_in(chain: list[str]) -> tuple[str, ...]:
        inherited = get_tracking_ids()
        with tracking(chain):
            await asyncio.sleep(0)
            return inherited + get_tracking_ids()

    with tracking(["root"]):
        chains = await asyncio.gather(publish_in(["a"]), publish_in(["b"]))
    assert list(chains) == [("root", "a"), ("root", "b")]


@pytest.mark.parametrize("ids", ["root", [1, 2], ["root", None], [b"root"]])
def test_what_is_not_a_sequence_of_texts_is_refused(ids: object) -> None:
    with pytest.raises(ConfigurationError, match="sequence of strings"), tracking(ids):  # type: ignore[arg-type]
        pass


@given(st.integers(0, 600))
def test_a_long_chain_keeps_its_root_and_its_nearest_ancestors(length: int) -> None:
    chain = tuple(str(number) for number in range(length))
    kept = shorten(chain)
    assert len(kept) == min(length, CHAIN_LIMIT)
    assert kept[: CHAIN_LIMIT // 2] == chain[: CHAIN_LIMIT // 2]
    assert kept[-(CHAIN_LIMIT // 2) :] == chain[-(CHAIN_LIMIT // 2) :]


def test_a_chain_at_its_limit_takes_further_ids_at_its_end() -> None:
    with tracking([str(number) for number in range(1000)]):
        chain = extend_chain("child")
    assert len(chain) == 256
    assert (chain[0], chain[-2], chain[-1]) == ("0", "999", "child")


def test_ids_are_random_uuids_however_many_are_made() -> None:
    ids = [new_id(), *new_ids(2000)]
    assert len(set(ids)) == 2001
    for id_ in ids:
        parsed = uuid.UUID(id_)
        assert (str(parsed), parsed.version, parsed.variant) == (id_, 4, uuid.RFC_4122)
    assert new_ids(0) == []
