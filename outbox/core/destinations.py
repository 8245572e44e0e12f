"""Destinations: the brokers that an outbox feeds, each with its own rows and relays, and the rules that choose between them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from outbox.core.topics import matches
from outbox.errors import ConfigurationError

DEFAULT = "default"
"""The destination of messages for which nothing else is said: the outbox table itself."""
LONGEST_NAME = 30
"""Most characters of a name, which becomes a part of names of tables and indexes."""

NAME_PATTERN = "^[a-z][a-z0-9_]*$"
"""What names look like."""


def validate_destination(name: object) -> str:
    """Returns the name of a destination. Raises `ConfigurationError` unless it is letters, digits and underscores."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not re.fullmatch(NAME_PATTERN[1:-1], name, re.ASCII):
        raise ConfigurationError(
            f"a destination has up to {LONGEST_NAME} lower-case letters, digits and underscores, as 'kafka', not {name!r:.80}"
        )
    return name


def validate_destinations(names: object) -> tuple[str, ...]:
    """Returns one or several destinations, each once. Raises `ConfigurationError` for none and for names that are invalid."""
    given = (names,) if isinstance(names, str) else names
    if not isinstance(given, Sequence) or not given:
        raise ConfigurationError(f"give a destination such as 'kafka', or a list of them that is not empty, not {names!r:.80}")
    return tuple(dict.fromkeys(map(validate_destination, given)))


@dataclass(frozen=True, slots=True)
class Route:
    """Sends messages whose routing key matches `pattern` to the destinations `to`.

    `pattern` is a binding key: `*` stands for one word, `#` for any number of words. `to` is one name or several; "default" is
    the outbox table without a name. Raises `ConfigurationError` for anything else.
    """

    pattern: str
    to: str | Sequence[str]
    names: Sequence[str] = field(init=False, repr=False)
    """The destinations, each once."""

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise ConfigurationError(f"the pattern of a route is a binding key such as 'audit.*', not {self.pattern!r:.80}")
        object.__setattr__(self, "names", validate_destinations(self.to))


class Destinations:
    """Rules that decide, when a message is published, where it goes. The first route that matches decides.

    A message that no route matches goes to the default destination. Each destination gets a row of its own, with the id of the
    message, so that it is sent, retried, held and parked there whatever happens to it elsewhere.
    """

    def __init__(self, rules: Iterable[Route]) -> None:
        self.rules = tuple(rules)
        for rule in self.rules:
            if not isinstance(rule, Route):
                raise ConfigurationError(
                    f"a rule of Destinations is a Route, as Route('audit.*', to='kafka'), not {rule!r:.80}"
                )

    def __repr__(self) -> str:
        return f"Destinations(rules={list(self.rules)!r})"

    def of(self, routing_key: str) -> Sequence[str]:
        """Returns the destinations of messages with `routing_key`."""
        return next((rule.names for rule in self.rules if matches(rule.pattern, routing_key)), (DEFAULT,))
