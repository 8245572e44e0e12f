"""What a message costs in round trips, rows, log and bytes is what `benchmarks/counters.json` says."""

import pytest

from benchmarks.counting import SCENARIOS, TOLERANCES, baseline, place, quiet
from benchmarks.scaling import WORK, Model, report
from benchmarks.servers import Servers
from tests.servers.postgres import OwnPostgres
from tests.servers.rabbitmq import NamedRabbitMQ, PrivateRabbitMQ

pytestmark = pytest.mark.slow
LEAST = {"round trips": 0.03, "rows": 0.01, "log": 30.0, "to the broker": 5.0, "writes": 0.1, "calls": 15.0}
"""A figure may differ by so much for each message, however small it is: what begins and ends is divided among them, too. On a
busy machine a run takes longer, and has more of what is done once a second; and fewer messages end together on RabbitMQ, which
share the 21 bytes of an acknowledgement."""


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_message_costs_what_it_did(
    name: str,
    own_postgres: OwnPostgres,
    rabbitmq_server: PrivateRabbitMQ | NamedRabbitMQ,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # As the benchmarks do: a line for each message makes more than a hundred calls, and an earlier test may have wanted it.
    caplog.set_level("ERROR", "outbox")
    await quiet(own_postgres.url)
    async with place(Servers(own_postgres.url, rabbitmq_server)) as at:
        counts = await SCENARIOS[name](at)
    expected = baseline()[name]
    for each, tolerance in TOLERANCES.items():
        assert counts[each] == pytest.approx(expected[each], rel=tolerance, abs=LEAST[each]), (
            f"{each} of {name!r}: if that is meant, run `python -m benchmarks.counting --write`"
        )


def test_the_model_of_scaling_finds_what_a_call_and_a_write_take() -> None:
    counters = baseline()
    made_up = Model(call=0.25, write=20)
    costs = {work.name: made_up.cost(counters[work.name]) for work in WORK}
    found = Model.fitted(costs, counters)
    assert (found.call, found.write) == pytest.approx((0.25, 20))
    assert "| fitted |" in report(costs, counters)
