"""What the engine asks of the world: a Store to claim from, a Transport to send through, a Broker to consume from.

Each comment is a promise that the contract tests hold every adapter to.
"""

from outbox.ports.consuming import Broker, Delivery, Intake, Receive, Subscription
from outbox.ports.dead_letters import Archive, DeadDelivery, DeadLetterQueues, DeadMessage, ReceiveDead
from outbox.ports.observing import Observer
from outbox.ports.pausing import Gate
from outbox.ports.sending import (
    CONFIRMED,
    UNROUTABLE,
    Confirmed,
    NotSent,
    Refused,
    SendResult,
    Transport,
    Unconfirmed,
    Unroutable,
)
from outbox.ports.storing import Backlog, Claim, Doorbell, Nap, Store
from outbox.ports.transactions import Marks, Unit, UnitsOfWork

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
