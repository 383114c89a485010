"""Migration of a state folder's documents from one format to the next: pure.

A step knows the two forms by itself: later changes of the code do not affect them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from walstream.pipeline.state_document import Entries, StateDocument, StoredDocuments

_Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Backfill:
    """A backfill of format 1: one document for all tables."""

    tables: tuple[str, ...]
    failed: Mapping[str, str]
    replace: tuple[str, ...]
    others: tuple[str, ...]
    begun: Mapping[str, object] | None = None  # None: by one that kept nothing of it
    lsn: object = None
    rows: object = None
    elsewhere: object = None


@dataclass(frozen=True, slots=True)
class _Incremental:
    """Requests beside the stream of format 1: one document for all tables."""

    tables: Mapping[str, _Fields] = field(default_factory=dict)


def tables_apart(kept: StoredDocuments) -> Entries:
    """Return each table that is backfilled a document of its own."""
    backfill = StateDocument("backfill", _Backfill).read(kept)
    beside = StateDocument("beside", _Incremental).read(kept)
    changed: _Fields = {}
    if backfill is not None:
        changed |= _backfill(backfill)
    if beside is not None:
        changed |= _beside(beside, StateDocument("beside", _Fields).read(kept) or {})
    return changed


def _backfill(old: _Backfill) -> Entries:
    # the oldest kept nothing of what had begun
    begun = dict.fromkeys(old.tables) if old.begun is None else old.begun
    names = dict.fromkeys([*old.tables, *old.failed, *begun])
    left, emptied, others = map(set, (old.tables, old.replace, old.others))
    return {
        "backfill": {"lsn": old.lsn, "rows": old.rows, "elsewhere": old.elsewhere},
        **{
            f"backfill/{name}": {
                "place": place,
                "left": name in left,
                "replace": name in emptied,
                "other": name in others,
                "failed": old.failed.get(name, ""),
                "begun": name in begun,
                "key": begun.get(name),
            }
            for place, name in enumerate(names)
        },
    }


def _beside(old: _Incremental, fields: _Fields) -> Entries:
    return {
        "beside": {name: one for name, one in fields.items() if name != "tables"},
        **{
            f"beside/{name}": {**wish, "place": place}
            for place, (name, wish) in enumerate(old.tables.items())
        },
    }
