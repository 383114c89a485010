"""Names with `*` and `?`, as the configuration has them."""

import re
from collections.abc import Callable, Iterable
from typing import Final

_WILD: Final = re.compile(r"[*?]")


def is_pattern(name: str) -> bool:
    """Return True for a name with `*` or `?`, and for ^ and a regular expression."""
    return name.startswith("^") or _WILD.search(name) is not None


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a filter of names: True for one that some pattern matches."""
    texts = [
        re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
        for pattern in patterns
    ]
    matches = re.compile("|".join(texts) or "(?!)", re.DOTALL).fullmatch
    return lambda name: matches(name) is not None


def subscription(topic: str, *, own_out: bool = False) -> str:
    """Return what librdkafka subscribes to: a name, or ^ and a regular expression.

    With `own_out` the expression of a pattern leaves out Kafka's own topics, `__...`.
    """
    if not is_pattern(topic) or topic.startswith("^"):
        return topic
    found = _not_own(re.sub(r"\*+", "*", topic)) if own_out else _expression(topic)
    return f"^{found or ''}$"


def _expression(pattern: str) -> str:
    # a legal name has letters, digits and -._ alone, of which . is to be escaped
    return pattern.replace(".", r"\.").replace("*", ".*").replace("?", ".")


def _not_own(pattern: str, underscores: int = 2) -> str | None:
    """Return an expression for what does not begin with so many; None: nothing.

    The broker's RE2 has no lookahead.
    """
    if underscores == 0:
        return None
    if not pattern:
        return ""
    first, rest = pattern[0], pattern[1:]
    if first not in "*?_":
        return _expression(pattern)
    later = _not_own(pattern if first == "*" else rest, underscores - 1)
    found = [] if later is None else [f"_{later}"]
    if first == "_":
        return found[0] if found else None
    found.append(f"[^_]{_expression(pattern if first == '*' else rest)}")
    shorter = _not_own(rest, underscores) if first == "*" else None
    if shorter:
        found.append(shorter)
    return f"({'|'.join(found)}){'?' if shorter == '' else ''}"
