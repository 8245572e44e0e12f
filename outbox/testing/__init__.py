"""Test doubles for applications that publish and consume: recording publishers, a broker in memory, crash points.

`outbox.testing.plugin` has pytest fixtures. docs/testing.md shows how to use them.
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
