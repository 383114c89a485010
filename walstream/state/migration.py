"""What a state folder's documents become from one format to the next: pure.

A step knows the two forms by itself: what the code makes of them later is no matter.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol


class OldDocuments(Protocol):
    """What is kept, by name."""

    def read(self, name: str) -> Any | None: ...


def tables_apart(kept: OldDocuments) -> dict[str, Any]:
    """Return each table that is backfilled a document of its own."""
    backfill, beside = kept.read("backfill"), kept.read("beside")
    changed: dict[str, Any] = {}
    if backfill is not None:
        changed |= _backfill(backfill)
    if beside is not None:
        changed |= _beside(beside)
    return changed


_HEAD: Final = ("lsn", "rows", "elsewhere")


def _backfill(old: Mapping[str, Any]) -> dict[str, Any]:
    # the oldest kept nothing of what had begun
    begun = old.get("begun", dict.fromkeys(old["tables"]))
    names = dict.fromkeys([*old["tables"], *old["failed"], *begun])
    left, emptied, others = map(set, (old["tables"], old["replace"], old["others"]))
    return {
        "backfill": {name: old.get(name) for name in _HEAD},
        **{
            f"backfill/{name}": {
                "place": place,
                "left": name in left,
                "replace": name in emptied,
                "other": name in others,
                "failed": old["failed"].get(name, ""),
                "begun": name in begun,
                "key": begun.get(name),
            }
            for place, name in enumerate(names)
        },
    }


def _beside(old: Mapping[str, Any]) -> dict[str, Any]:
    tables = old.get("tables", {})
    return {
        "beside": {name: old[name] for name in old if name != "tables"},
        **{
            f"beside/{name}": {**wish, "place": place}
            for place, (name, wish) in enumerate(tables.items())
        },
    }
