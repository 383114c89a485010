"""Scripted faults around a source, a sink or positions.

The lost answer (`FailAfterWrite`) is the one that most suites forget: the request has
happened, but the caller gets a failure.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

Target = TypeVar("Target")


class Behaviour(Protocol):
    """Fault that one call has instead."""

    def __call__(self, call: Callable[[], Any], /) -> Any: ...


@dataclass(frozen=True)
class Reject:
    """Nothing is done; the caller hears why."""

    error: Exception

    def __call__(self, _call: Callable[[], Any]) -> Any:
        raise self.error


@dataclass(frozen=True)
class FailAfterWrite:
    """It is done, and the answer gets lost."""

    error: Exception

    def __call__(self, call: Callable[[], Any]) -> Any:
        call()
        raise self.error


@dataclass(frozen=True)
class HoldResponse:
    """It is done, and the answer comes when `released` is set."""

    done: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, call: Callable[[], Any]) -> Any:
        answer = call()
        self.done.set()
        self.released.wait()
        return answer


class Faulty:
    """Passes calls on; those of a scripted operation behave by the script, in turn.

    None in a script is a call that goes well; behind its end all do.
    """

    def __init__(
        self, target: object, script: Mapping[str, Iterable[Behaviour | None]]
    ) -> None:
        self._target = target
        self._script = {name: deque(turns) for name, turns in script.items()}

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        turns = self._script.get(name)
        if turns is None:
            return attribute

        def call(*arguments: Any, **named: Any) -> Any:
            behaviour = turns.popleft() if turns else None
            if behaviour is None:
                return attribute(*arguments, **named)
            return behaviour(lambda: attribute(*arguments, **named))

        return call


def faulty(target: Target, **script: Iterable[Behaviour | None]) -> Target:
    """Wrap a target: `faulty(positions, store=[Reject(error), None])`."""
    return cast("Target", Faulty(target, script))
