"""Rules for `tables` and the keys of a source that choose among them."""

from collections.abc import Iterator
from typing import Final

from walstream.config.problem import Problem
from walstream.config.reachable_topics import overlap
from walstream.config.source import PostgresSource

_AS_IT_IS: Final = (
    "has no effect with tables = [], which uses the publication as it is: leave it out"
)


def check_selection(name: str, source: PostgresSource) -> Iterator[Problem]:
    """Look at keys that have no effect, and at tables that no pattern takes."""
    path = ("sources", name)
    if source.backfill_where and source.backfill == "never":
        yield Problem(
            (*path, "backfill_where"),
            'has no effect with backfill = "never": leave it out',
        )
    if not source.tables:
        for key, written in (
            ("exclude", bool(source.exclude)),
            ("columns", bool(source.columns)),
            ("generated", source.generated != "none"),
        ):
            if written:
                yield Problem((*path, key), _AS_IT_IS)
        return
    for table in source.columns:
        if any(overlap(pattern, table) for pattern in source.exclude):
            yield Problem((*path, "columns", table), "is matched by exclude, too")
        elif not any(overlap(pattern, table) for pattern in source.tables):
            yield Problem(
                (*path, "columns", table),
                "is matched by no pattern of tables, so it is not published",
            )
