"""Ordering keys: the policy of each key, and the waves that keep a batch in order while it is sent."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from outbox.core.message import OrderingPolicy, PendingMessage
from outbox.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class OrderingRules:
    """The ordering policy for each prefix of ordering keys. The longest prefix comes first; the last, "", matches every key."""

    rules: tuple[tuple[str, OrderingPolicy], ...] = (("", OrderingPolicy.BLOCK),)

    @classmethod
    def of(cls, policies: str | Mapping[str, str]) -> Self:
        """Parses policies by prefix, where "" is for all other keys, from a mapping or from text.

        The text is `block`, or `skip,orders:=block`: a part without a prefix is for all other keys. Raises
        `ConfigurationError` for anything else.
        """
        by_prefix: dict[str, str] = {}
        if isinstance(policies, Mapping):
            by_prefix.update(policies)
        elif not isinstance(policies, str):
            raise ConfigurationError(f"ordering_policy must be text, or a mapping of prefixes to policies, not {policies!r}")
        else:
            for part in policies.split(","):
                prefix, _, policy = part.strip().rpartition("=")
                if prefix in by_prefix:
                    raise ConfigurationError(f"ordering_policy has two policies for the prefix {prefix!r}: {policies!r}")
                by_prefix[prefix] = policy
        rules = {"": OrderingPolicy.BLOCK}
        for prefix, policy in by_prefix.items():
            if not isinstance(prefix, str):
                raise ConfigurationError(f"ordering_policy needs prefixes that are text, not {prefix!r}")
            if policy not in tuple(OrderingPolicy):
                known = ", ".join(repr(known.value) for known in OrderingPolicy)
                raise ConfigurationError(f"ordering_policy must be one of {known}, or map prefixes to these, not {policy!r}")
            rules[prefix] = OrderingPolicy(policy)
        return cls(tuple(sorted(rules.items(), key=lambda rule: -len(rule[0]))))

    @property
    def prefixes(self) -> list[str]:
        """The prefixes, longest first."""
        return [prefix for prefix, _ in self.rules]

    @property
    def policies(self) -> list[str]:
        """The policies, in the order of `prefixes`."""
        return [policy.value for _, policy in self.rules]


class Waves:
    """Splits a batch into waves with at most one message of each lane, so that none overtakes a refused message of its lane.

    Messages without a lane, or with the policy SKIP, are all in the first wave.
    """

    def __init__(self, claimed: Sequence[PendingMessage]) -> None:
        self._claimed = claimed
        self._waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        self._next: list[int] = []
        for index, pending in enumerate(claimed):
            lane = pending.lane
            if lane is None or lane.policy is OrderingPolicy.SKIP:
                self._next.append(index)
            else:
                self._waiting[lane.number].append(index)
        self._next += [indexes.popleft() for indexes in self._waiting.values()]

    def next(self) -> Sequence[int]:
        """Returns the indexes of the messages that can be sent now; empty when there are none."""
        wave, self._next = self._next, []
        return wave

    def release_next(self, index: int) -> None:
        """Adds the next message of the lane to the next wave, once the message at this index is sent."""
        lane = self._claimed[index].lane
        if lane is not None and (behind := self._waiting.get(lane.number)):
            self._next.append(behind.popleft())
