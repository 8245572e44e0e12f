"""Acknowledgements of one channel, gathered over a turn of the event loop and written in as few frames as possible."""

import asyncio
import struct
from collections import deque
from collections.abc import Callable

_method = struct.Struct(">BHIHHQB").pack
_METHOD, _SIZE, _BASIC, _END = 1, 13, 60, b"\xce"
_ACK, _REJECT, _NACK = 80, 90, 120
_MULTIPLE, _REQUEUE = 1, 2

Write = Callable[[bytes], None]


class Acknowledgements:
    """Keeps the delivery tags in hand, in order of arrival, and answers the broker for them through `write`.

    A finished run at the front is acknowledged with one frame, a finished delivery behind an unfinished one by itself. All
    that finish in one turn of the event loop leave at its end, or with `flush`.
    """

    def __init__(self, channel_number: int, write: Write) -> None:
        self._channel = channel_number
        self._write = write
        self._in_hand: deque[int] = deque()
        self._finished: set[int] = set()
        self._answered: set[int] = set()
        self._refusals: list[bytes] = []
        self._scheduled = False
        self._held = False

    def arrived(self, tag: int) -> None:
        """A delivery is in hand."""
        self._in_hand.append(tag)

    def ack(self, tag: int) -> None:
        """The broker may forget it."""
        self._finished.add(tag)
        self._schedule()

    def give_back(self, tag: int) -> None:
        """The broker shall deliver it again. With nack, which newer brokers do not count as a failure."""
        self._refuse(tag, _NACK, _REQUEUE)

    def reject(self, tag: int) -> None:
        """The broker shall dead-letter it."""
        self._refuse(tag, _REJECT, 0)

    def give_back_all(self) -> None:
        """The broker shall deliver again whatever is still in hand; what was held back leaves before."""
        self.release()
        unfinished = [tag for tag in self._in_hand if tag not in self._answered]
        if unfinished:
            self._in_hand.clear()
            self._answered.clear()
            self._write(self._frame(_NACK, unfinished[-1], _MULTIPLE | _REQUEUE))

    def hold(self) -> None:
        """Nothing leaves until `release`."""
        self._held = True

    def release(self) -> None:
        """Whatever has gathered leaves now."""
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Writes what has gathered."""
        self._scheduled = False
        if self._held:
            return
        # Refusals first: an acknowledgement of a run would cover them.
        frames = self._refusals
        self._refusals = []
        run, last = self._front_run()
        if run:
            frames.append(self._frame(_ACK, last, _MULTIPLE if run > 1 else 0))
        frames.extend(self._frame(_ACK, tag, 0) for tag in self._finished)
        self._answered |= self._finished
        self._finished = set()
        if frames:
            self._write(b"".join(frames))

    def _front_run(self) -> tuple[int, int]:
        """Takes settled deliveries off the front: how many of them have not been answered yet, and the last of these."""
        run = last = 0
        while self._in_hand:
            tag = self._in_hand[0]
            if tag in self._finished:
                self._finished.discard(tag)
                run, last = run + 1, tag
            elif tag in self._answered:
                self._answered.discard(tag)
            else:
                break
            self._in_hand.popleft()
        return run, last

    def _refuse(self, tag: int, method: int, bits: int) -> None:
        # Its one bit stands where nack has `multiple`.
        self._refusals.append(self._frame(method, tag, bits))
        self._answered.add(tag)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def _frame(self, method: int, tag: int, bits: int) -> bytes:
        return _method(_METHOD, self._channel, _SIZE, _BASIC, method, tag, bits) + _END
