"""A table of PostgreSQL, as the catalog tells of it: an ordinary one with a key."""

from typing import Any

from walstream.postgres.catalog import TableFacts


def table_facts(full_name: str = "public.t", **other: Any) -> TableFacts:
    """Return the facts of a table whose primary key is `id`, but for `other`."""
    schema, _, name = full_name.partition(".")
    key = other.get("primary_key", ("id",))
    ordinary: dict[str, Any] = {
        "kind": "r",
        "persistence": "p",
        "replica_identity": "d",
        "primary_key": key,
        # what the WAL holds of an old row: by DEFAULT its key
        "identity": key if other.get("replica_identity", "d") == "d" else (),
        "columns": (*key, "v"),
        "not_null": frozenset(key),
        "root": None,
        "leaves_full": True,
        "leaves_identified": True,
    }
    return TableFacts(schema=schema, name=name, **{**ordinary, **other})
