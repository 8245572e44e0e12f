"""For the tests of applications that publish and consume: publishers that record, a broker in memory, crashes at named points.

Fixtures of pytest are in `outbox.testing.plugin`. docs/testing.md shows how to use all of it.
"""

from outbox.testing.recorder import Published, RecordedPublisher, Recording, RecordingPublisher, recorded
from outbox.testing.workers import CrashingBroker, CrashPoint, kill_this_process, work_off
from outbox.transports.memory import DeadLetter, MemoryBroker

__all__ = [
    "CrashPoint",
    "CrashingBroker",
    "DeadLetter",
    "MemoryBroker",
    "Published",
    "RecordedPublisher",
    "Recording",
    "RecordingPublisher",
    "kill_this_process",
    "recorded",
    "work_off",
]
