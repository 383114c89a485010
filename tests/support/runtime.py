"""The machine, but for what a test replaces."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from walstream.telemetry import runtime


class _Altered:
    def __init__(self, own: dict[str, Callable[..., Any]]) -> None:
        self._before = runtime.current()
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)


@contextmanager
def altered(**own: Callable[..., Any]) -> Iterator[None]:
    """Replace some functions of the host, as `monotonic=lambda: 5.0`."""
    with runtime.use(cast("runtime.Runtime", _Altered(own))):
        yield
