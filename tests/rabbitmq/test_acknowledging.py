"""Acknowledgements leave at once in as few frames as possible, and never cover unfinished deliveries."""

import asyncio

from pamqp import frame
from pamqp.commands import Basic

from outbox.transports.rabbitmq.inbound import Acknowledgements


class Wire:
    """Records writes, each as a list of the decoded frames."""

    def __init__(self) -> None:
        self.writes: list[list[str]] = []

    def write(self, data: bytes) -> None:
        words = []
        while data:
            size, _, method = frame.unmarshal(data)
            data = data[size:]
            match method:
                case Basic.Ack():
                    words.append(f"ack {'..' if method.multiple else ''}{method.delivery_tag}")
                case Basic.Nack():
                    words.append(f"give back {'..' if method.multiple else ''}{method.delivery_tag}")
                    assert method.requeue
                case Basic.Reject():
                    words.append(f"reject {method.delivery_tag}")
                    assert not method.requeue
        self.writes.append(words)


def in_hand(*tags: int) -> tuple[Acknowledgements, Wire]:
    wire = Wire()
    acknowledgements = Acknowledgements(1, wire.write)
    for tag in tags:
        acknowledgements.arrived(tag)
    return acknowledgements, wire


async def test_acknowledgements_of_one_event_loop_iteration_leave_in_one_frame() -> None:
    acknowledgements, wire = in_hand(1, 2, 3, 4)
    for tag in (2, 1, 3):
        acknowledgements.ack(tag)
    assert wire.writes == []
    await asyncio.sleep(0)
    assert wire.writes == [["ack ..3"]]


async def test_a_finished_delivery_behind_an_unfinished_one_has_a_separate_frame() -> None:
    acknowledgements, wire = in_hand(1, 2, 3, 4)
    acknowledgements.ack(3)
    await asyncio.sleep(0)
    acknowledgements.ack(1)
    await asyncio.sleep(0)
    acknowledgements.ack(2)
    acknowledgements.ack(4)
    await asyncio.sleep(0)
    assert wire.writes == [["ack 3"], ["ack 1"], ["ack ..4"]]


async def test_a_multiple_acknowledgement_ends_with_a_delivery_that_was_not_acknowledged_before() -> None:
    acknowledgements, wire = in_hand(1, 2, 3)
    acknowledgements.ack(2)
    acknowledgements.ack(3)
    await asyncio.sleep(0)
    acknowledgements.ack(1)
    await asyncio.sleep(0)
    assert [sorted(words) for words in wire.writes] == [["ack 2", "ack 3"], ["ack 1"]]


async def test_a_return_leaves_before_a_multiple_acknowledgement_that_covers_it() -> None:
    acknowledgements, wire = in_hand(1, 2, 3, 4)
    acknowledgements.ack(1)
    acknowledgements.ack(3)
    acknowledgements.give_back(2)
    acknowledgements.reject(4)
    acknowledgements.flush()
    assert wire.writes == [["give back 2", "reject 4", "ack ..3"]]


async def test_all_unanswered_deliveries_are_returned_in_one_frame() -> None:
    acknowledgements, wire = in_hand(1, 2, 3, 4, 5)
    acknowledgements.ack(4)
    acknowledgements.give_back(2)
    acknowledgements.give_back_all()
    assert wire.writes == [["give back 2", "ack 4"], ["give back ..5"]]
    acknowledgements.give_back_all()
    assert len(wire.writes) == 2


async def test_held_acknowledgements_are_not_returned_with_unanswered_deliveries() -> None:
    acknowledgements, wire = in_hand(1, 2, 3)
    acknowledgements.hold()
    acknowledgements.ack(1)
    acknowledgements.reject(2)
    acknowledgements.give_back_all()
    assert wire.writes == [["reject 2", "ack 1"], ["give back ..3"]]


async def test_held_answers_leave_when_they_are_released() -> None:
    acknowledgements, wire = in_hand(1, 2)
    acknowledgements.hold()
    acknowledgements.ack(1)
    await asyncio.sleep(0)
    assert wire.writes == []
    acknowledgements.release()
    assert wire.writes == [["ack 1"]]
