"""Topic matching as in RabbitMQ: `*` matches exactly one word, `#` any number of words, including none.

Source: RabbitMQ's "Topic exchange" documentation. Words are separated by dots; a word may be empty.
"""

from functools import lru_cache


def matches(binding_key: str, routing_key: str) -> bool:
    """Whether a queue bound with `binding_key` receives a message published with `routing_key`."""
    if "*" not in binding_key and "#" not in binding_key:
        return binding_key == routing_key
    # One pass over the words with the set of possible positions in the pattern: backtracking could take exponential time.
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
    """Adds the positions behind each `#`, which also matches no word at all."""
    reached = set(indexes)
    for index in sorted(indexes):
        following = index
        while following < len(pattern) and pattern[following] == "#":
            following += 1
            reached.add(following)
    return reached
