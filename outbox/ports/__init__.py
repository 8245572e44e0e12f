"""What the engine asks of the world: a Store to claim from, a Transport to send through, a Broker to consume from.

Each comment is a promise that the contract tests hold every adapter to.
"""

from outbox.ports.broker import (
    CONFIRMED,
    UNROUTABLE,
    Broker,
    Confirmed,
    Delivery,
    Intake,
    NotSent,
    Receive,
    Refused,
    SendResult,
    Subscription,
    Transport,
    Unconfirmed,
    Unroutable,
)
from outbox.ports.dead_letters import Archive, DeadDelivery, DeadLetterQueues, DeadMessage, ReceiveDead
from outbox.ports.store import Backlog, Claim, Doorbell, Gate, Marks, Nap, Observer, Store, Unit, UnitsOfWork

__all__ = [
    "CONFIRMED",
    "UNROUTABLE",
    "Archive",
    "Backlog",
    "Broker",
    "Claim",
    "Confirmed",
    "DeadDelivery",
    "DeadLetterQueues",
    "DeadMessage",
    "Delivery",
    "Doorbell",
    "Gate",
    "Intake",
    "Marks",
    "Nap",
    "NotSent",
    "Observer",
    "Receive",
    "ReceiveDead",
    "Refused",
    "SendResult",
    "Store",
    "Subscription",
    "Transport",
    "Unconfirmed",
    "Unit",
    "UnitsOfWork",
    "Unroutable",
]
