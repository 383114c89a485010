"""Reset of a sql source, so that its next run starts from scratch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from walstream.config import Config, PolledTable, SqlSource
from walstream.errors import StateDamaged
from walstream.state.control import lent
from walstream.state.lmdb_environment import discard
from walstream.state.lock import FolderLock
from walstream.status.lookup.sql import kept_of
from walstream.status.sql import (
    StoredPolls,
)

_NAMED: Final = 5  # tables, of those that begin alike


def reset(config: Config, name: str, consent: Callable[[str], bool]) -> str:
    """Forget every table's position; give what was done, in a sentence.

    `consent` is asked with what that means, before anything is stopped: a running
    instance lends the source, and starts from scratch.
    """
    source = config.sql_source(name)
    folder = Path(config.state) / name
    kept = kept_of(source, folder)
    if kept.problem is not None and not isinstance(kept.problem, StateDamaged):
        raise kept.problem
    begins = " ".join(_beginnings(source))
    if not consent(
        f"Source {name!r} ({_at(kept)}) forgets the positions of all its tables, and"
        f" the keys that were missing. {begins}"
    ):
        return "nothing was changed"
    with lent(config, name) as running:
        lock = FolderLock(folder)
        lock.acquire()
        try:
            discard(folder)
        finally:
            lock.release()
    ending = (
        ", and starts from scratch" if running else "; the next run starts from scratch"
    )
    return f"source {name!r} is reset{ending}"


def _at(kept: StoredPolls) -> str:
    if kept.problem is not None:
        return "its state is damaged"
    keys = [f"{name}: {told.key}" for name, told in kept.tables.items()]
    return _listed(keys, "; ") if keys else "no position"


def _beginnings(source: SqlSource) -> Iterator[str]:
    """Yield where the tables begin then, those together that begin alike."""
    alike: dict[str, list[str]] = {}
    for name, rules in source.tables.items():
        alike.setdefault(_beginning(rules), []).append(name)
    for how, names in alike.items():
        yield f"Then {_listed(names, ', ')} begin{'s' * (len(names) == 1)} {how}."


def _beginning(rules: PolledTable) -> str:
    match rules.start:
        case "beginning":
            return "with the first row: all existing rows are sent again"
        case "end":
            return (
                "with rows that come from then on: existing rows that were not sent "
                "yet never are"
            )
        case _:
            return f"after key {rules.start_after}"


def _listed(names: list[str], between: str) -> str:
    more = len(names) - _NAMED
    others = f" and {more} more" if more > 0 else ""
    return between.join(names[:_NAMED]) + others
