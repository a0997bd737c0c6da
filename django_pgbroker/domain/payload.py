"""Strict JSON for arguments and results: what goes in comes out unchanged, or is refused with its path.

The rules are the table in docs/reference/payload.md. Used by enqueue and by the worker's verdicts.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring

from django_pgbroker.domain.errors import InvalidPayload, PayloadTooLarge

DEFAULT_LIMIT_BYTES = 65_536
DEEPEST_LEVEL = 100
#: About 4,200 digits; Python itself refuses to read back more than 4,300.
LARGEST_INTEGER_BITS = 14_000

_LARGEST_PLAIN = 1 << 64
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TRUNCATED = " … [truncated, {length} characters in all]"

_HINTS = {
    "tuple": "a tuple would arrive as a list; send list(value)",
    "set": "a set has no JSON form; send sorted(value)",
    "frozenset": "a frozenset has no JSON form; send sorted(value)",
    "bytes": "bytes have no JSON form; send text, or base64.b64encode(value).decode()",
    "bytearray": "bytes have no JSON form; send text, or base64.b64encode(value).decode()",
    "memoryview": "bytes have no JSON form; send text, or base64.b64encode(value).decode()",
    "Decimal": "a Decimal would lose its type; send str(value) and read it with Decimal(...)",
    "Fraction": "a Fraction has no JSON form; send its numerator and denominator",
    "complex": "a complex number has no JSON form; send its real and imaginary part",
    "datetime": "a datetime would lose its type; send value.isoformat() and read it with datetime.fromisoformat(...)",
    "date": "a date would lose its type; send value.isoformat() and read it with date.fromisoformat(...)",
    "time": "a time would lose its type; send value.isoformat() and read it with time.fromisoformat(...)",
    "timedelta": "a timedelta would lose its type; send value.total_seconds()",
    "UUID": "a UUID would lose its type; send str(value) and read it with UUID(...)",
}


def encode_arguments(arguments: Mapping[str, object], limit: int = DEFAULT_LIMIT_BYTES) -> str:
    """The arguments of a job as JSON text.

    Args:
        arguments: the handler's arguments by name.
        limit: the most bytes that the text may have in UTF-8.

    Raises:
        InvalidPayload: a value is no strict JSON; its path begins with ``arguments``.
        PayloadTooLarge: the text is longer than ``limit``.
    """
    return _encode_within(arguments if type(arguments) is dict else dict(arguments), "arguments", limit)


def encode_result(value: object, limit: int = DEFAULT_LIMIT_BYTES) -> str:
    """The result of a handler as JSON text, by the same rules; ``None`` is the JSON null.

    Raises:
        InvalidPayload: a value is no strict JSON; its path begins with ``result``.
        PayloadTooLarge: the text is longer than ``limit`` bytes.
    """
    return _encode_within(value, "result", limit)


def encode_memory(value: object, path: str, limit: int = DEFAULT_LIMIT_BYTES) -> str:
    """What a job remembers over its attempts as JSON text, by the same rules.

    Args:
        value: the result of a step, or a cursor.
        path: what it is, as the errors call it.
        limit: the most bytes that the text may have in UTF-8.

    Raises:
        InvalidPayload: a value is no strict JSON.
        PayloadTooLarge: the text is longer than ``limit`` bytes.
    """
    return _encode_within(value, path, limit)


def sanitise_text(text: str, limit: int) -> str:
    """Text that PostgreSQL can store: NUL and lone surrogates as visible escapes, cut to ``limit`` with a mark.

    Args:
        text: anything, such as the message of an exception.
        limit: the most characters of the answer; room for the mark (50 characters) is assumed.
    """
    clean = text.replace("\x00", r"\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if len(clean) <= limit:
        return clean
    mark = _TRUNCATED.format(length=len(clean))
    return clean[: max(limit - len(mark), 0)] + mark[:limit]


def _encode_within(value: object, root: str, limit: int) -> str:
    text = _encode_plain(value) or "".join(_encode(value, root, ()))
    size = len(text) if text.isascii() else len(text.encode("utf-8"))
    if size > limit:
        raise PayloadTooLarge(
            root, f"{size:,} bytes as JSON exceed the limit of {limit:,}; store the data and send a reference to it"
        )
    return text


def _encode_plain(value: object) -> str | None:
    """What nearly all values are, in one quick pass; None for whatever needs a closer look."""
    text = _join_plain(value, DEEPEST_LEVEL)
    if text is None or r"\u0000" in text or not (text.isascii() or _is_unicode(text)):
        return None
    return text


def _join_plain(value: object, levels: int) -> str | None:
    """Only texts, small integers, booleans and None, in lists and dicts no deeper than allowed."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)  # type: ignore[arg-type]
    if kind is dict and levels:
        return _join_dict(value, levels - 1)  # type: ignore[arg-type]
    if kind is int:
        return str(value) if -_LARGEST_PLAIN < value < _LARGEST_PLAIN else None  # type: ignore[operator]
    if kind is list and levels:
        parts = [_join_plain(item, levels - 1) for item in value]  # type: ignore[attr-defined]
        return None if None in parts else f"[{','.join(parts)}]"  # type: ignore[arg-type]
    if kind is bool:
        return "true" if value else "false"
    return "null" if value is None else None


def _join_dict(members: dict[object, object], levels: int) -> str | None:
    parts = []
    for key, member in members.items():
        text = encode_basestring(member) if type(member) is str else _join_plain(member, levels)
        if text is None or type(key) is not str:
            return None
        parts.append(f"{encode_basestring(key)}:{text}")
    return f"{{{','.join(parts)}}}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _encode(value: object, path: str, ancestors: tuple[int, ...]) -> Iterator[str]:
    kind = type(value)
    if encode := _SCALARS.get(kind):
        yield encode(value, path)
    elif kind is list or kind is dict:
        if id(value) in ancestors:
            raise InvalidPayload(path, "the value contains itself; send a tree")
        if len(ancestors) >= DEEPEST_LEVEL:
            raise InvalidPayload(path, f"nested deeper than {DEEPEST_LEVEL} levels; flatten it")
        inside = (*ancestors, id(value))
        yield from _encode_list(value, path, inside) if kind is list else _encode_dict(value, path, inside)  # type: ignore[arg-type]
    elif isinstance(value, str) and not isinstance(value, Enum):
        yield _encode_text(str.__str__(value), path)
    else:
        raise InvalidPayload(path, _explain(value))


def _encode_list(items: list[object], path: str, ancestors: tuple[int, ...]) -> Iterator[str]:
    separator = "["
    for index, item in enumerate(items):
        yield separator
        yield from _encode(item, f"{path}[{index}]", ancestors)
        separator = ","
    yield "]" if items else "[]"


def _encode_dict(members: dict[object, object], path: str, ancestors: tuple[int, ...]) -> Iterator[str]:
    separator = "{"
    for key, member in members.items():
        if not isinstance(key, str) or isinstance(key, Enum):
            raise InvalidPayload(
                f"{path}[{_show(key)}]", "a key must be a str, or it would arrive as another one; send str(key)"
            )
        inner = f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{_show(key)}]"
        yield separator
        yield _encode_text(str.__str__(key), inner)
        yield ":"
        yield from _encode(member, inner, ancestors)
        separator = ","
    yield "}" if members else "{}"


def _encode_text(value: str, path: str) -> str:
    if "\x00" in value:
        raise InvalidPayload(path, "PostgreSQL cannot store the NUL character; remove it or encode the text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidPayload(
            path, "the text has a lone surrogate, which is no character; decode it with errors='replace'"
        ) from None
    return encode_basestring(value)


def _encode_integer(value: int, path: str) -> str:
    if value.bit_length() > LARGEST_INTEGER_BITS:
        raise InvalidPayload(path, f"the integer has more than {LARGEST_INTEGER_BITS:,} bits; send hex(value)")
    return str(value)


def _encode_float(value: float, path: str) -> str:
    if not math.isfinite(value):
        raise InvalidPayload(path, f"{value!r} is no JSON number; send None or a text")
    if value == 0 and math.copysign(1, value) < 0:
        raise InvalidPayload(path, "-0.0 would arrive as 0.0; send 0.0")
    text = repr(value)
    if "e" not in text:
        return text
    # jsonb keeps decimals, not exponents: 1e+22 would come back as an int
    plain = format(Decimal(text), "f")
    return plain if "." in plain else plain + ".0"


def _explain(value: object) -> str:
    if isinstance(value, Enum):
        return f"a member of {type(value).__name__} would lose its type; send value.value"
    for base in type(value).__mro__:
        if hint := _HINTS.get(base.__name__):
            return hint
        if base in (int, float, list, dict):
            return f"{type(value).__name__} would arrive as a plain {base.__name__}; send {base.__name__}(value)"
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        return f"a {type(value).__name__} instance would be stale by then; send its pk and load it in the handler"
    if type(value).__name__ == "__proxy__":
        return "a lazy translation depends on the reader's language; send str(value)"
    if hasattr(value, "__next__"):
        return "a generator can be read only once; send list(value)"
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"{name} has no JSON form; send plain dict, list, str, int, float, bool or None"


def _show(key: object) -> str:
    return ascii(key)[:80]


_SCALARS: dict[type, Callable[..., str]] = {
    str: _encode_text,
    int: _encode_integer,
    float: _encode_float,
    bool: lambda value, _: "true" if value else "false",
    type(None): lambda value, _: "null",
}
