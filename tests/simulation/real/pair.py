"""Acts that are done to a simulated Kafka and to a real one, until they differ."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.simulation.real.comparison import Differs, difference

S = TypeVar("S")


@dataclass
class ComparedPair(Generic[S]):
    """Two sides; each act is a method of its name, and `_compare` follows it."""

    model: S
    truth: S
    name: str  # of its topics, apart from all others
    done: list[str] = field(default_factory=list)
    _sent: int = 0

    def run(self, acts: list[tuple[str, int]]) -> None:
        """Do them all. Raises Differs at the first difference."""
        for kind, number in acts:
            self.done.append(f"{kind} {number}")
            draw = random.Random(number)  # noqa: S311 - repeatable
            getattr(self, f"_{kind.replace(' ', '_')}")(draw)
            self._compare()

    def _both(self, act: Callable[[S], object]) -> None:
        for side in (self.model, self.truth):
            act(side)

    def _compare(self) -> None:
        raise NotImplementedError

    def _same(self, what: str, model: object, truth: object) -> None:
        if model != truth:
            done = "\n  ".join(self.done)
            raise Differs(f"{what}\n{difference(model, truth)}\nafter\n  {done}")
