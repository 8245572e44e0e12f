"""Topic matching as RabbitMQ does it: `*` stands for exactly one word, `#` for any number of words, none included.

Source: RabbitMQ's "Topic exchange" documentation. Words are what stands between dots; a word may be empty.
"""

from functools import lru_cache


def matches(binding_key: str, routing_key: str) -> bool:
    """Whether a queue bound with `binding_key` receives a message published with `routing_key`."""
    if "*" not in binding_key and "#" not in binding_key:
        return binding_key == routing_key
    return _match(_words(binding_key), _words(routing_key))


@lru_cache(maxsize=4096)
def _words(key: str) -> tuple[str, ...]:
    return tuple(key.split(".")) if key else ()


def _match(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Walks the words once, keeping the set of places in the pattern that the walk can be at."""
    places = _skip_any(pattern, {0})
    for word in words:
        places = _skip_any(pattern, {following for place in places for following in _step(pattern, place, word)})
        if not places:
            return False
    return len(pattern) in places


def _step(pattern: tuple[str, ...], place: int, word: str) -> tuple[int, ...]:
    if place == len(pattern):
        return ()
    if pattern[place] == "#":
        return (place,)
    return (place + 1,) if pattern[place] in ("*", word) else ()


def _skip_any(pattern: tuple[str, ...], places: set[int]) -> set[int]:
    """`#` also stands for no word at all, so a place in front of it is a place behind it."""
    reached = set(places)
    for place in sorted(places):
        following = place
        while following < len(pattern) and pattern[following] == "#":
            following += 1
            reached.add(following)
    return reached
