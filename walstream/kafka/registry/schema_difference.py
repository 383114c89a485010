"""Differences of two versions of a schema, field by field: pure.

A registry says that a version is not compatible, and rarely why in words of columns.
"""

from collections.abc import Iterator
from typing import Final

from walstream.errors import WalstreamError
from walstream.formats.encodings.languages import Fields, language_of_kind
from walstream.formats.encodings.subject import SubjectSchema

_MOST: Final = 10
_OTHER_SHAPE: Final = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


def differing(before: str, now: SubjectSchema) -> str:
    """Name the fields that differ; "" where that is not known."""
    language = language_of_kind(now.kind)
    if language is None:
        return ""
    try:
        one, other = language.fields(before), language.fields(now.text)
    except (*_OTHER_SHAPE, WalstreamError):
        return ""
    found = list(_compared(one, other))
    more = len(found) - _MOST
    return ", ".join(found[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _compared(before: Fields, now: Fields) -> Iterator[str]:
    for name, (kind, default) in now.items():
        if name not in before:
            told = "" if default else ", which has no default"
            yield f"new field {name} {kind}{told}"
        elif before[name][0] != kind:
            yield f"field {name} was {before[name][0]} and is {kind}"
        elif before[name][1] != default:
            yield f"field {name} has {'a' if default else 'no'} default now"
    for name, (kind, default) in before.items():
        if name not in now:
            told = "" if default else ", which had no default"
            yield f"field {name} {kind} is gone{told}"
