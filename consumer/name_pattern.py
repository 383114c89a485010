"""Names with `*` and `?`, as the configuration has them."""

import re
from collections.abc import Callable, Iterable
from typing import Final

_WILD: Final = re.compile(r"[*?]")


def is_pattern(name: str) -> bool:
    """Return True for a name with `*` or `?`."""
    return _WILD.search(name) is not None


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a filter of names: True for one that some pattern matches."""
    texts = [
        re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
        for pattern in patterns
    ]
    matches = re.compile("|".join(texts) or "(?!)", re.DOTALL).fullmatch
    return lambda name: matches(name) is not None


def subscription(topic: str) -> str:
    """Return what librdkafka subscribes to: a name, or ^ and a regular expression."""
    if not is_pattern(topic) or topic.startswith("^"):
        return topic
    # a legal name has letters, digits and -._ alone, of which . is to be escaped
    expression = topic.replace(".", r"\.").replace("*", ".*").replace("?", ".")
    return f"^{expression}$"
