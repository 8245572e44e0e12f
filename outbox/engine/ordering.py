"""Ordering keys: which policy a key has, and in which waves a batch is sent so that nothing overtakes its predecessor."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from outbox.core.message import OrderingPolicy, PendingMessage
from outbox.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class OrderingRules:
    """The policy of each prefix of ordering keys, the longest prefix first; the last one, "", has every key."""

    rules: tuple[tuple[str, OrderingPolicy], ...] = (("", OrderingPolicy.BLOCK),)

    @classmethod
    def of(cls, policies: str | Mapping[str, str]) -> Self:
        """From policies by prefix, where "" stands for the other keys, or from text that says as much.

        The text is `block`, or `skip,orders:=block`: each part but one names the prefix that it is for. Raises
        `ConfigurationError` for anything else.
        """
        by_prefix: dict[str, str] = {}
        if isinstance(policies, Mapping):
            by_prefix.update(policies)
        elif not isinstance(policies, str):
            raise ConfigurationError(f"ordering_policy is text, or a mapping of policies by prefix, not {policies!r}")
        else:
            for part in policies.split(","):
                prefix, _, policy = part.strip().rpartition("=")
                if prefix in by_prefix:
                    raise ConfigurationError(f"ordering_policy says twice what becomes of the keys {prefix!r}: {policies!r}")
                by_prefix[prefix] = policy
        rules = {"": OrderingPolicy.BLOCK}
        for prefix, policy in by_prefix.items():
            if not isinstance(prefix, str):
                raise ConfigurationError(f"ordering_policy goes by prefixes of ordering keys, which are text, not {prefix!r}")
            if policy not in tuple(OrderingPolicy):
                known = ", ".join(repr(known.value) for known in OrderingPolicy)
                raise ConfigurationError(f"ordering_policy must be one of {known}, or such by prefix, not {policy!r}")
            rules[prefix] = OrderingPolicy(policy)
        return cls(tuple(sorted(rules.items(), key=lambda rule: -len(rule[0]))))

    @property
    def prefixes(self) -> list[str]:
        """The longest first."""
        return [prefix for prefix, _ in self.rules]

    @property
    def policies(self) -> list[str]:
        """In the order of `prefixes`."""
        return [policy.value for _, policy in self.rules]


class Waves:
    """The order in which a batch is sent: of each lane one message at a time, so that a refusal lets nothing overtake.

    What has no lane, or may be overtaken, is in the first wave.
    """

    def __init__(self, claimed: Sequence[PendingMessage]) -> None:
        self._claimed = claimed
        self._waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        self._next: list[int] = []
        for place, pending in enumerate(claimed):
            lane = pending.lane
            if lane is None or lane.policy is OrderingPolicy.SKIP:
                self._next.append(place)
            else:
                self._waiting[lane.number].append(place)
        self._next += [places.popleft() for places in self._waiting.values()]

    def next(self) -> Sequence[int]:
        """The places of those that can be sent now; empty when there are none."""
        wave, self._next = self._next, []
        return wave

    def passed(self, place: int) -> None:
        """The message at `place` is gone: the one behind it may follow."""
        lane = self._claimed[place].lane
        if lane is not None and (behind := self._waiting.get(lane.number)):
            self._next.append(behind.popleft())
