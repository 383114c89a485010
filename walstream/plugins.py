"""Plugins: what installed packages add by the entry point groups of their metadata."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final

from walstream.errors import ConfigError, WalstreamError

FORMATS: Final = "walstream.formats"
HANDLERS: Final = "walstream.handlers"
SINKS: Final = "walstream.sinks"
SOURCES: Final = "walstream.sources"
TOKENS: Final = "walstream.tokens"


@lru_cache
def names(group: str) -> tuple[str, ...]:
    """Return the names in a group, in alphabetical order."""
    return tuple(sorted(entry_points(group=group).names))


def tag(group: str, built: Collection[str]) -> Callable[[Any], str | None]:
    """Return whether a kind is built in or a package adds it."""

    def tagged(written: Any) -> str | None:
        by_key = isinstance(written, Mapping)
        kind = written.get("kind") if by_key else getattr(written, "kind", None)
        return "package" if kind not in built and kind in names(group) else kind

    return tagged


@lru_cache
def load(group: str, name: str) -> Any:
    """Return what an installed package adds; raise ConfigError if that fails."""
    (entry, *_) = [*entry_points(group=group, name=name), None]
    if entry is None:
        raise ConfigError(
            f"no installed package adds {name!r} to the group {group!r}",
            hint="install it where walstream is installed",
        )
    try:
        return entry.load()
    except Exception as error:  # noqa: BLE001 - a stranger's code
        raise ConfigError(
            f"{name!r} of the group {group!r} cannot be imported from {entry.value!r}:"
            f" {type(error).__name__}: {error}",
            hint="repair the package that adds it, or leave it out",
        ) from None


def make(group: str, kind: str, key: str, *given: Any) -> Any:
    """Call a package's factory for `key` of the configuration.

    Raises ConfigError if it fails, without its words, which may hold a secret.
    """
    maker = load(group, kind)
    try:
        return maker(*given)
    except WalstreamError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{key}: the package's {kind!r} cannot be made: {type(error).__name__}",
            hint="correct its options, or the package that adds it",
        ) from error
