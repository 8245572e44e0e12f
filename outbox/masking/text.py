"""Masking of free text: error messages, tracebacks, log lines, forms and markup.

Free text has no grammar that says where a secret begins and ends, so several layers process it, from the most to the least
certain: known secret values, then the patterns that databases, drivers and protocols put around values, then the values after
keys that are named like secrets. The value of another key is searched again, because it may contain a secret key. If the end of
a secret is doubtful, more is masked rather than less.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from itertools import islice
from urllib.parse import quote, quote_plus

from outbox.core.urls import without_passwords

LONGEST_SECRET = 10_000
"""Maximum length of a known secret in characters; of a longer value, the beginning is searched for."""
MOST_SECRETS = 1_000
"""Maximum number of known secrets of one message."""

_Masks = Callable[[str], bool]


def mask_text(
    text: str, masks: _Masks, mask: str, *, known: "KnownSecrets | None" = None, may_have_key: _Masks = lambda _: True
) -> str:
    """Replaces each secret in `text` by `mask`. `masks` decides whether a key is named like a secret; `known` finds values.

    `may_have_key` is a quick check that is False for most texts, in which no key can be named like a secret.
    """
    if known is not None:
        text = known.masked(text, mask)
    if _HARMLESS.fullmatch(text):
        return text
    text = without_passwords(text)
    for pattern in _CARRIERS:
        text = pattern.sub(lambda match: f"{match['before']}{mask}", text)
    if not may_have_key(text):
        return text
    text = _UNIQUE_KEY.sub(
        lambda match: f"{match['before']}{mask}" if any(map(masks, re.findall(r"\w+", match["columns"]))) else match[0], text
    )
    text = _replaced(text, _elements(text, masks), mask)
    for group in _GROUPS:
        text = group.sub(lambda match: _masked_named_values(match[0], masks, mask), text)
    return _replaced(text, _values(text, masks), mask)


def secrets_in(text: str, masks: _Masks) -> Iterator[str]:
    """Yields the values of masked keys in text that is not JSON, such as a form."""
    for start, end in (*_elements(text, masks), *_values(text, masks)):
        yield text[start:end].strip("\"'")


class KnownSecrets:
    """Finds known secret values, also in the notation of a driver, repr, JSON, HTML or URLs.

    Ignores values of one character, and finds those of two or three only as whole words, because they would match everywhere.
    Finds the beginning of a longer value at the very end of a text, too, because errors are cut to a maximum length. False if
    there are no values.
    """

    def __init__(self, secrets: Iterable[object], *, also: "KnownSecrets | None" = None) -> None:
        self.forms: dict[str, None] = {} if also is None else dict(also.forms)
        for secret in islice(secrets, MOST_SECRETS):
            self.forms |= dict.fromkeys(_notations(str(secret)[:LONGEST_SECRET]))

    def __bool__(self) -> bool:
        return bool(self.forms)

    def masked(self, text: str, mask: str) -> str:
        """Replaces each known value in `text` by `mask`."""
        # No single pattern of all forms: compiling it would block the event loop for seconds.
        forms = self._by_kind
        for form in forms.literals:
            text = text.replace(form, mask)
        if forms.numbers:
            text = _ANY_NUMBER.sub(lambda match: _masked_number(match[0], forms.numbers, mask), text)
        if forms.words:
            text = _ANY_WORD.sub(lambda match: mask if match[0] in forms.words else match[0], text)
        if forms.others is not None:
            text = forms.others.sub(mask, text)
        # The last value may have been cut with the text.
        whole = text.rstrip().removesuffix("…").removesuffix("...")
        for form in forms.literals:
            if len(form) <= _CUT_TO:
                break
            start = whole.find(form[:_CUT_TO], max(0, len(whole) - max(len(form), _LONGEST_END)))
            while start >= 0:
                end = whole[start:]
                if form.startswith(end) or not _SPACE.search(end):
                    return f"{whole[:start]}{mask}{text[len(whole) :]}"
                start = whole.find(form[:_CUT_TO], start + 1)
        return text

    @cached_property
    def _by_kind(self) -> "_Forms":
        literals: list[str] = []
        numbers, words, others = set[str](), set[str](), []
        # Longer forms first: a shorter one may be part of a longer one.
        for form in sorted(self.forms, key=len, reverse=True):
            if len(form) > _LONGEST_NUMBER:
                literals.append(form)
            elif _ALL_DIGITS.fullmatch(form):
                numbers.add(form.replace(" ", "").replace("-", ""))
            elif len(form) >= _SHORT and not form.isdecimal():
                literals.append(form)
            elif _ANY_WORD.fullmatch(form):
                words.add(form)
            else:
                others.append(rf"(?<!\w){re.escape(form)}(?!\w)")
        return _Forms(literals, numbers, words, re.compile("|".join(others)) if others else None)


@dataclass(frozen=True, slots=True)
class _Forms:
    """Forms by the way they are searched: as they are, longest first; in groups of digits; as words; and by a pattern."""

    literals: list[str]
    numbers: set[str]
    words: set[str]
    others: "re.Pattern[str] | None"


def _masked_number(text: str, numbers: set[str], mask: str) -> str:
    """Replaces each of `numbers` in grouped digits by `mask`, if it begins and ends at the boundary of a group."""
    positions = [index for index, character in enumerate(text) if character not in " -"]
    digits = "".join(text[index] for index in positions)
    starts = [0, *(after for after in range(1, len(positions)) if positions[after] > positions[after - 1] + 1)]
    ends = {*starts[1:], len(positions)}
    lengths = sorted({len(number) for number in numbers}, reverse=True)
    parts, done, behind = [], 0, 0
    for start in starts:
        if start < behind:
            continue
        for end in (start + length for length in lengths):
            if end in ends and digits[start:end] in numbers:
                parts += [text[done : positions[start]], mask]
                done, behind = positions[end - 1] + 1, end
                break
    return "".join(parts) + text[done:]


def _replaced(text: str, spans: Iterable[tuple[int, int]], mask: str) -> str:
    parts, done = [], 0
    for start, end in spans:
        if start < end:
            parts += [text[done:start], mask]
            done = end
    return "".join(parts) + text[done:]


# --- known values ------------------------------------------------------------------------------------------------------

_SHORT = 4
_ALL_DIGITS = re.compile(r"\d(?:[ -]?\d){7,}")
_CUT_TO = 8
_LONGEST_NUMBER = 100
"""Maximum number of digits of card and account numbers, which may be written in groups."""
_ANY_NUMBER = re.compile(r"(?<!\d)\d(?:[ -]?\d)+(?!\d)")
_ANY_WORD = re.compile(r"\w+")
_LONGEST_END = 400
"""Minimum length of the end of a text in which the beginning of a secret is searched."""
_HALF_A_PAIR = re.compile(r"[\ud800-\udfff]")
_SPACE = re.compile(r"\s")


def _notations(secret: str) -> Iterator[str]:
    """Yields the ways in which other software may write a value."""
    secret = secret.strip()
    if len(secret) < 2 or secret.lower() in ("true", "false", "null", "none"):
        return
    yield secret
    yield repr(secret)[1:-1]
    for ascii_only in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
    # JSON may contain a lone surrogate, such as "\\ud800"; brokers and databases replace it.
    raw = secret.encode("utf-8", "surrogatepass")
    if _HALF_A_PAIR.search(secret):
        yield from (_HALF_A_PAIR.sub(shown, secret) for shown in ("?", "\ufffd"))
    yield quote(raw)
    yield quote_plus(raw)
    yield escape(secret)
    yield " ".join(secret.split())


# --- carriers ----------------------------------------------------------------------------------------------------------

_HARMLESS = re.compile(r"[A-Za-z.,!?]*|-?\d+(?:\.\d+)?")
_REST_OF_DETAIL = (
    r".*?(?=\n(?:CONTEXT|HINT|LOCATION|STATEMENT|QUERY|LINE \d|\[SQL|\(Background|During handling|The above)|\n\s*\n|\Z)"
)
_CARRIERS = (
    # Keys and certificates, which may be cut with the text.
    re.compile(r"(?P<before>-----BEGIN [A-Z0-9 ]+-----).*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL),
    # SQLAlchemy shows the parameters of a statement; PostgreSQL shows the refused row, and in CONTEXT the parameters.
    re.compile(r"(?P<before>\[parameters: )[^\n]*"),
    re.compile(r"(?P<before>Failing row contains )" + _REST_OF_DETAIL, re.DOTALL),
    re.compile(r"(?P<before>\bparameters?:? \$\d+ = )[^\n]*"),
    # pydantic quotes the refused value, and names its field elsewhere. The text may be cut after the value.
    re.compile(r"(?P<before>\binput_value=)(?:'(?:[^'\\]|\\.)*'|.*?)(?=, input_type=|\Z)", re.DOTALL),
    re.compile(
        r"""(?P<before>(?P<quote>\\*["'])loc(?P=quote): .{0,500}?(?P=quote)input(?P=quote):\s)"""
        r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,}]*[,}])""",
        re.DOTALL,
    ),
    # Headers in a request or a log: with any scheme, the rest of the line or of the quoted string is the credential.
    re.compile(
        r"""(?P<before>\b(?:proxy-)?(?:authorization|authentication)(?P<close>\\*["'])\s*[:=,]\s*)"""
        r"""(?:b?\\*"(?:[^"\\]|\\.)*\\*"|b?\\*'(?:[^'\\]|\\.)*\\*'|[^\n]*)""",
        re.IGNORECASE,
    ),
    re.compile(
        r"""(?P<before>(?P<quote>\\*["'])?\b(?:(?:proxy-)?authorization|(?:set-)?cookie)\s*[:=]\s*)(?!\s|b?["'\\\[{(])"""
        r"""(?(quote)(?:(?!(?P=quote))[^\n])+|[^\n]+)""",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<before>\b(?:Bearer|Basic|Negotiate|ApiKey|AWS4-HMAC-SHA256)\s+)[\w.~+/=:,-]{6,}", re.IGNORECASE),
    # Values that can be recognized by their form.
    re.compile(r"(?P<before>)\beyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?"),
    re.compile(
        r"(?P<before>)\b(?:sk|pk|rk)_(?:live|test)_\w+|\bgh[pousr]_\w{16,}|\bxox[abeprs]-[\w-]{8,}|\bA(?:KIA|SIA)[A-Z0-9]{16}\b"
    ),
    # A part of an uploaded form.
    re.compile(
        r"""(?P<before>form-data;\s*name=\\*["']?[^"'\\;]*(?:pass|secret|token|card|pin|key|cvv|cvc|iban|ssn)[^"'\\;]*\\*["']?"""
        r"""[^\n\\]*?(?:\r?\n|(?:\\r)?\\n)(?:[^\n\\]+(?:\r?\n|(?:\\r)?\\n))*(?:\r?\n|(?:\\r)?\\n)).*?(?=(?:\r?\n|(?:\\r)?\\n)--|\Z)""",
        re.IGNORECASE | re.DOTALL,
    ),
)
# `Key (email, api_key)=(a, b) already exists.`; the columns may be expressions.
_UNIQUE_KEY = re.compile(
    r"(?P<before>\bKey \((?P<columns>.{1,500}?)\)=\()(?P<values>.*?)"
    r"(?=\) (?:already exists|is not present|is still referenced|is duplicated|conflicts)|\)?\.?\s*\Z|\n)",
    re.DOTALL,
)


# --- markup ------------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"(?P<open><|&lt;)(?P<name>[A-Za-z_][\w.:-]{0,100})(?P<attributes>(?:\s[^<>&]{0,500})?)(?P<close>>|&gt;)")
_NAMED = re.compile(r"""\b(?:name|key|id)\s*=\s*\\*["'](?P<name>[^"'\\]{1,100})""")
_VALUE_OF_TAG = re.compile(r"""(\bvalue\s*=\s*\\*["'])[^"'\\]*""")


def _elements(text: str, masks: _Masks) -> Iterator[tuple[int, int]]:
    """Yields start and end of the content of elements whose name, or attribute `name`, `key` or `id`, names a secret."""
    done = 0
    for tag in _TAG.finditer(text):
        if tag.start() < done:
            continue
        named = _NAMED.search(tag["attributes"])
        if not masks(tag["name"].rpartition(":")[2]) and not (named and masks(named["name"])):
            continue
        if value := _VALUE_OF_TAG.search(text, tag.start("attributes"), tag.end("attributes")):
            yield value.end(1), value.end()
        if not tag["attributes"].rstrip().endswith("/"):
            end = text.find(f"{tag['open']}/{tag['name']}", tag.end())
            done = end if end >= 0 else len(text)
            yield tag.end(), done


# --- {"name": "password", "value": …} ----------------------------------------------------------------------------------

_GROUPS = (re.compile(r"\{[^{}]{0,4000}\}"), re.compile(r"\([^()]{0,2000}\)"), re.compile(r"\[[^\[\]]{0,2000}\]"))
_NAME_OF_PAIR = re.compile(
    r"""(?<!\w)\\*["']?(?:name|key|field|header)\\*["']?\s*[:=]\s*b?\\*["'](?P<name>[^"'\\]{1,100})\\*["']""", re.IGNORECASE
)
_VALUE_OF_PAIR = re.compile(r"""(?<!\w)\\*["']?values?\\*["']?\s*[:=]\s*""", re.IGNORECASE)
_TUPLE = re.compile(
    r"""[(\[]\s*b?(?P<quote>\\*["'])(?P<name>[^"'\\]{1,100})(?P=quote)\s*,\s*(?P<value>.+?)\s*,?\s*[)\]]""", re.DOTALL
)


def _masked_named_values(group: str, masks: _Masks, mask: str) -> str:
    pair = _TUPLE.fullmatch(group)
    if pair is not None and masks(pair["name"]):
        return f"{group[: pair.start('value')]}{mask}{group[pair.end('value') :]}"
    if not any(masks(name["name"]) for name in _NAME_OF_PAIR.finditer(group)):
        return group
    parts, done = [], 0
    for value in _VALUE_OF_PAIR.finditer(group):
        if value.start() >= done:
            parts += [group[done : value.end()], mask]
            done = min(_value_end(group, value.end()), len(group) - 1)
    return "".join(parts) + group[done:]


# --- a key, and what follows it ----------------------------------------------------------------------------------------

_QUOTE = r"""(?:\\*["'`]|&quot;|&\#34;|%22)"""
_WORDS = r"[^\W\d][\w.-]{0,60}(?:[ ][^\W\d][\w-]{0,30}){0,2}"
# `password: x`, `"password" => x`, `user[password]=x`; `password is 'x'`; `password hunter2`; `--password x`.
_KEY = re.compile(
    rf"""
    (?: (?P<option> -- ) | (?<!\w) | (?<=%22) | (?<=\\[nrt]) ) (?! (?<=\\) [nrt]\w ) (?P<key> {_WORDS} )
    (?:
        {_QUOTE}? (?: \s? \] ){{0,2}} \s{{0,4}} (?: => | :=? | ==? | %3D | %3A ) \s{{0,8}}
      | {_QUOTE}? [ ]{{1,3}} (?: (?:is|was|of|to|value) [ ] )? (?= {_QUOTE} )
      | [ ]{{1,3}} (?: (?:is|was|of|to|value) [ ] )? (?= [^\s'"]*\d ) (?= [^\s'",;)\]}}]{{4}} )
      | (?(option) [ ]+ (?= [^\s-] ) | (?!) )
    )
    """,
    re.VERBOSE,
)
_STRING = re.compile(r"""(?:[bBrRuUfF]{0,2}(?=["'\\]))?(?P<quote>\\*(?:\"\"\"|'''|["'`])|&quot;|&\#34;|%22)""")
_CALL = re.compile(r"[^\W\d][\w.]{0,100}\(")
_BARE = re.compile(r"""[^\s,;&"'<>)\]}\\]+(?:[ -]\d{2,}\b)*""")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)\s+(?=\S)", re.IGNORECASE)
_BRACKET_OR_QUOTE = re.compile(r"""[\[\](){}]|\\*["']""")
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def _values(text: str, masks: _Masks) -> Iterator[tuple[int, int]]:
    """Yields start and end of the values of masked keys."""
    at = 0
    while match := _KEY.search(text, at):
        at = match.end()
        if masks(match["key"]):
            at = _value_end(text, match.end())
            if at > match.end():
                yield match.end(), at
        # The last words may be a key by themselves: "refused card number 4111".
        elif " " in match["key"]:
            at = match.start("key") + match["key"].index(" ") + 1


def _value_end(text: str, at: int) -> int:
    """Returns the end of the value at a position: of a string, of brackets with their content, or of a word."""
    if string := _STRING.match(text, at):
        return _string_end(text, string.end(), string["quote"])
    if call := _CALL.match(text, at):
        return _bracket_end(text, call.end() - 1)
    if text[at : at + 1] in _CLOSING:
        return _bracket_end(text, at)
    if scheme := _SCHEME.match(text, at):
        at = scheme.end()
    bare = _BARE.match(text, at)
    return bare.end() if bare else at


def _string_end(text: str, at: int, quote_: str) -> int:
    """Returns the end of a string; an unclosed string ends with the text."""
    end = _end_of_string(quote_).search(text, at)
    return end.end() if end else len(text)


@lru_cache(maxsize=64)
def _end_of_string(quote_: str) -> "re.Pattern[str]":
    """Pattern for the end of a string: the same quote, unless it is escaped once more."""
    if quote_ in ('"', "'", "`"):
        return re.compile(rf"(?<!\\)(?:\\\\)*{quote_}")
    return re.compile(rf"(?<!\\){re.escape(quote_)}")


def _bracket_end(text: str, at: int) -> int:
    """Returns the end of the closing bracket. Ignores brackets in strings."""
    open_: list[str] = []
    while match := _BRACKET_OR_QUOTE.search(text, at):
        sign, at = match[0], match.end()
        if sign in _CLOSING:
            open_.append(_CLOSING[sign])
        elif sign[-1] in "\"'":
            at = _string_end(text, at, sign)
        elif open_ and sign == open_[-1]:
            open_.pop()
        if not open_:
            return at
    return len(text)
