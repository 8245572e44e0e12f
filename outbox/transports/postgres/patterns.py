"""Binding keys as regular expressions, so that PostgreSQL can match them where the messages are."""

import re

_SPECIAL = re.compile(r"[][.^$*+?(){}|\\]")


def pattern_of(binding_key: str) -> str | None:
    """The PostgreSQL regular expression for what `outbox.core.topics.matches` does; None for a key without wildcards.

    A `#` in front of the first other word stands for words with a dot behind each, any later one for words with a dot in front.
    """
    if "*" not in binding_key and "#" not in binding_key:
        return None
    words = [word for word, before in _with_predecessor(binding_key.split(".")) if not word == before == "#"]
    leading = words[0] == "#"
    if leading and len(words) == 1:
        return "^"
    first, *rest = words[1:] if leading else words
    tail = "".join(r"(\.[^.]*)*" if word == "#" else rf"\.{_one(word)}" for word in rest)
    head = r"([^.]*\.)*" if leading else ""
    # A routing key without any character has no words, so nothing that demands one matches it.
    return f"^(?!$){head}{_one(first)}{tail}$"


def _with_predecessor(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words, ["", *words], strict=False))


def _one(word: str) -> str:
    return "[^.]*" if word == "*" else _SPECIAL.sub(r"\\\g<0>", word)
