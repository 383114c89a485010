"""What is done to a whole installation, simulated or real, drawn from a seed."""

import random
from dataclasses import dataclass
from typing import Final

from tests.simulation.schedule import Schedule

_APART_S: Final = 0.4  # virtual time from one commit to the next
# by the simulation's names
FAULTS: Final = (
    "kill",
    "kill",
    "stop",
    "cut",
    "server crash",
    "checkpoint",
    "message",
    "grow",
    "Kafka away",
    "freeze",
)
MOMENTS: Final = ("at once", "record", "confirmation")


@dataclass(frozen=True)
class Fault:
    """Something goes wrong behind a commit, at a moment of its delivery."""

    name: str
    behind: int  # so many commits
    moment: str  # at once, or when another record, or confirmation, was seen


@dataclass(frozen=True)
class Course:
    """Commits, each by its seed, and faults between them."""

    seed: int
    commits: list[int]
    faults: list[Fault]

    @classmethod
    def of(cls, seed: int) -> "Course":
        draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
        commits = [draw.getrandbits(32) for _ in range(draw.choice((6, 12, 20)))]
        faults = [
            Fault(
                draw.choice(FAULTS), draw.randrange(len(commits)), draw.choice(MOMENTS)
            )
            for _ in range(draw.randint(1, 4))
        ]
        return cls(seed, commits, sorted(faults, key=lambda one: one.behind))

    def schedule(self) -> Schedule:
        """Give what the simulation runs."""
        commits = [(at * _APART_S, seed) for at, seed in enumerate(self.commits)]
        faults = []
        freezes = []
        for fault in self.faults:
            moment = MOMENTS.index(fault.moment) * _APART_S / 4
            if fault.name == "freeze":
                freezes.append((fault.behind * 20 + 1, 0.5))
            else:
                faults.append((fault.behind * _APART_S + moment, fault.name))
        return Schedule(self.seed, commits, faults, [], freezes)
