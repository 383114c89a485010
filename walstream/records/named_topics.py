"""Topics that records name: legal, bounded, and none of a table's.

Such a name may come from data. Without a bound, a column that was mistaken for a type
would make a topic for each row; without a look at the tables' topics, their readers
would find records that are no ops.
"""

import re
from typing import Final

from walstream.errors import HistoryError
from walstream.lsn import show
from walstream.op import ReplicationOp, Table
from walstream.records.router import Router

MAX_NAMED_TOPICS: Final = 1000
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class NamedTopics:
    """Those of one sink, while it is open."""

    def __init__(self, router: Router, most: int) -> None:
        """Allow so many, and none of those that the router gives to tables."""
        self._router = router
        self._most = most
        self._reserved: set[str] = set()
        self._names: set[str] = set()
        self._own: set[tuple[str, Table]] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def reserve(self, topic: str) -> None:
        """Keep a topic of the sink's own from records."""
        self._reserved.add(topic)

    def is_taken(self, topic: str) -> bool:
        """Return whether tables, or other records of the sink's own, have a topic."""
        return topic in self._reserved or self._router.serves(topic)

    def admit(self, name: str, op: ReplicationOp) -> None:
        """Let a record of an op name a topic; raise HistoryError where it may not.

        Its table's own topic it may name: there it goes by configuration. An error
        shows no name that may be a row's value.
        """
        table = op.table
        if name in self._names or (name, table) in self._own:
            return
        record = (
            f"a record of table {table.full_name!r} at ({show(op.lsn)}, {op.seq_id})"
        )
        if not _LEGAL.fullmatch(name) or name in {".", ".."}:
            raise HistoryError(
                f"{record} names a topic that Kafka does not allow: it has"
                f" {len(name)} characters, of 249 at most, or others than"
                " a-z A-Z 0-9 . _ -",
                hint="correct the topic of the handler, or leave such rows out by a "
                "filter in front of it; then: walstream run",
            )
        if name == self._router.topic(table.schema, table.name):
            self._own.add((name, table))
            return
        if self.is_taken(name):
            raise HistoryError(
                f"{record} names the topic {name!r}, which has other records: their"
                " readers would meet it",
                hint="give the handler's topics a beginning of their own; or, if this "
                "is meant, map the table to that topic in the sink's topics; then: "
                "walstream run",
            )
        if len(self._names) >= self._most:
            raise HistoryError(
                f"{record} names one topic more than the {self._most} that are allowed",
                hint="see whether the handler's route is the right column; if it is, "
                "raise its max_topics; then: walstream run",
            )
        self._names.add(name)

    def keep_out(self, topic: str, table: Table) -> None:
        """Raise HistoryError for a table whose topic such records have already."""
        if topic in self._names:
            raise HistoryError(
                f"table {table.full_name!r} would go to the topic {topic!r}, which has"
                " records of a handler: its readers would meet ops",
                hint=f"name another in [sinks.NAME.topics.{table.full_name!r}], then: "
                "walstream run",
            )
