"""Topic matching as RabbitMQ does it: `*` stands for exactly one word, `#` for any number of words, none included.

Source: RabbitMQ's "Topic exchange" documentation. Words are what stands between dots; a word may be empty.
"""

from functools import lru_cache


def matches(binding_key: str, routing_key: str) -> bool:
    """Whether a queue bound with `binding_key` receives a message published with `routing_key`."""
    if "*" not in binding_key and "#" not in binding_key:
        return binding_key == routing_key
    # Walks the words once, keeping the set of indexes in the pattern that the walk can be at.
    pattern = _words(binding_key)
    indexes = _skip_any(pattern, {0})
    for word in _words(routing_key):
        following: set[int] = set()
        for index in indexes:
            if index < len(pattern) and pattern[index] == "#":
                following.add(index)
            elif index < len(pattern) and pattern[index] in ("*", word):
                following.add(index + 1)
        indexes = _skip_any(pattern, following)
        if not indexes:
            return False
    return len(pattern) in indexes


@lru_cache(maxsize=4096)
def _words(key: str) -> tuple[str, ...]:
    return tuple(key.split(".")) if key else ()


def _skip_any(pattern: tuple[str, ...], indexes: set[int]) -> set[int]:
    """`#` also stands for no word at all, so an index in front of it is an index behind it."""
    reached = set(indexes)
    for index in sorted(indexes):
        following = index
        while following < len(pattern) and pattern[following] == "#":
            following += 1
            reached.add(following)
    return reached
