"""What is done to a PostgreSQL, simulated or real, drawn from a seed."""

import random
from dataclasses import dataclass
from typing import Final, NamedTuple

# what a client does, and how often beside the others
_WEIGHTS: Final = {
    "commit": 12,
    "pair": 4,  # two that are open at the same time, and commit one after the other
    "abort": 3,
    "begin": 3,  # one that stays open until a later commit, or a roll back
    "roll back": 1,
    "say": 2,
    "grow": 1,
    "read": 5,
    "facts": 1,
    "snapshot": 2,
    "busy": 2,
    "copy": 1,
    "checkpoint": 2,
    "crash": 1,
}
CONFIRMED: Final = (
    "end",  # of a transaction that was read
    "commit",  # its commit record: it is told again
    "told",  # as far as the server said that it told
    "below",  # less than was confirmed before
    "nothing",
)
ENDED: Final = ("the protocol's", "its process's", "the server's")


class Read(NamedTuple):
    """One connection to the slot."""

    messages: bool
    at: int  # begin there: 0, the slot decides; else this many transactions are told
    confirmed: str
    ended: str


@dataclass(frozen=True)
class Act:
    """One of them; the number draws what it writes."""

    kind: str
    number: int = 0
    read: Read | None = None


def drawn(seed: int) -> list[Act]:
    """Draw the acts of one seed."""
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
    # of each seed some kinds alone, so that they meet more often
    kinds = ["commit", "read", *draw.sample(list(_WEIGHTS), draw.randint(2, 6))]
    shares = [_WEIGHTS[kind] for kind in kinds]
    acts = [
        _act(kind, draw)
        for kind in draw.choices(kinds, shares, k=draw.choice((6, 12, 25)))
    ]
    return [*acts, _act("read", draw), Act("facts")]


def _act(kind: str, draw: random.Random) -> Act:
    if kind != "read":
        return Act(kind, draw.getrandbits(32))
    read = Read(
        draw.random() < 0.5,
        draw.choice((0, 0, 0, draw.randrange(8))),
        draw.choice(CONFIRMED),
        draw.choice(ENDED),
    )
    return Act(kind, draw.getrandbits(32), read)
