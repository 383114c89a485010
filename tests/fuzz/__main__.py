"""`make fuzz`: readers against inputs that nobody wrote; a journal counts them."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import orjson

from tests.fuzz.mutator import mutated, shrunk
from tests.fuzz.targets import BY_NAME, TARGETS, Target

ROOT: Final = Path(__file__).parents[2]
JOURNAL: Final = ROOT / ".fuzz-journal"
_TURN_S: Final = 2.0
_LOOK_EVERY: Final = 50  # inputs between two looks at the clock
_TRIES_APART: Final = 100  # each is a process
_PATIENCE_S: Final = 30  # that one input may take, at most


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", default="0", help="begins another sequence")
    parser.add_argument("--target", choices=BY_NAME, help="only this one")
    parser.add_argument("--fresh", action="store_true", help="without the journal")
    options = parser.parse_args(arguments)
    targets = [BY_NAME[options.target]] if options.target else list(TARGETS)
    counts: dict[str, int] = {}
    if JOURNAL.exists() and not options.fresh:
        counts = orjson.loads(JOURNAL.read_bytes())

    def keep() -> None:
        if not options.fresh:
            JOURNAL.write_bytes(orjson.dumps(counts))

    found = fuzzed(targets, counts, options.seed, options.seconds, keep)
    for target in targets:
        count = counts.get(f"{options.seed} {target.name}", 0)
        sys.stdout.write(f"{target.name}: {count:,} executions in all\n")
    return 1 if found else 0


def fuzzed(
    targets: Sequence[Target],
    counts: dict[str, int],
    seed: str,
    seconds: float,
    keep: Callable[[], None] = lambda: None,
) -> bool:
    """Take turns until the time is over; return whether anything was found."""
    end = time.monotonic() + seconds
    share_s = seconds / sum(target.weight for target in targets)
    found = False
    while (left_s := end - time.monotonic()) > 0:
        for target in targets:
            turn_s = min(_TURN_S, share_s) * target.weight
            until = min(end, time.monotonic() + min(turn_s, left_s))
            bad = (_apart if target.apart else _turn)(target, counts, seed, until)
            if bad is not None:
                found = True
                _tell(target, bad)
        keep()
        if found:
            break
    return found


def _turn(
    target: Target, counts: dict[str, int], seed: str, until: float
) -> bytes | None:
    """Run one target for a while; return an input that it cannot bear."""
    corpus, key = target.corpus, f"{seed} {target.name}"
    number = counts.get(key, 0)
    bad: bytes | None = None
    while bad is None and time.monotonic() < until:
        for number in range(number, number + _LOOK_EVERY):  # noqa: B020 - goes on
            data = mutated(corpus, f"{seed} {target.name} {number}")
            signal.alarm(_PATIENCE_S)  # ends the process: what takes longer is a defect
            if target.finds(data) is not None:
                bad = data
                break
        number += 1
    signal.alarm(0)
    counts[key] = number
    return bad


def _apart(
    target: Target, counts: dict[str, int], seed: str, until: float
) -> bytes | None:
    """Do the same in a process of its own, which may end by a signal."""
    corpus, key = target.corpus, f"{seed} {target.name}"
    number = counts.get(key, 0)
    while time.monotonic() < until:
        child = os.fork()
        if not child:
            signal.alarm(_PATIENCE_S)
            bad = [
                one
                for one in range(number, number + _LOOK_EVERY)
                if target.finds(mutated(corpus, f"{seed} {target.name} {one}"))
            ]
            os._exit(1 if bad else 0)
        _, status = os.waitpid(child, 0)
        if status:
            return _first_bad(target, corpus, seed, number)
        number += _LOOK_EVERY
        counts[key] = number
    return None


def _first_bad(
    target: Target, corpus: list[bytes], seed: str, first: int
) -> bytes | None:
    """Find which input of some it was, a process for each."""
    for number in range(first, first + _LOOK_EVERY):
        data = mutated(corpus, f"{seed} {target.name} {number}")
        if _ends_badly(target, data):
            return data
    return None


def _ends_badly(target: Target, data: bytes) -> bool:
    child = os.fork()
    if not child:
        signal.alarm(_PATIENCE_S)
        os._exit(1 if target.finds(data) else 0)
    return bool(os.waitpid(child, 0)[1])


def _tell(target: Target, data: bytes) -> None:
    """Print a small input, and what escapes of it."""
    if target.apart:
        small = shrunk(data, lambda less: _ends_badly(target, less), _TRIES_APART)
        what = "a process that ended, or an error that is not documented"
    else:
        first = target.finds(data)
        small = shrunk(data, lambda less: type(target.finds(less)) is type(first))
        # how deep is too deep depends on who calls
        what = repr(target.finds(small) or first)
    sys.stdout.write(f"{target.name}: {what[:300]}\n  of {small[:500]!r}\n")


if __name__ == "__main__":
    sys.exit(main())
