"""One thing that somebody does, as it can be done again."""

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """Who does it, and what the oracle has to look at."""

    ROWS = "rows"  # SQL that walstream has to send; errors are the writer's own
    SCHEMA = "schema"  # SQL: what it does to rows by itself is in no stream
    MIGRATION = "migration"  # several of both in a transaction: `sql`, each a line
    PUBLICATION = "publication"  # SQL: after it rows may be missing, if that is said
    OPERATOR = "operator"  # SQL that must not cost anything
    START = "start"
    STOP = "stop"
    KILL = "kill"
    FREEZE = "freeze"  # it lags behind then, and has not ended
    THAW = "thaw"
    CHECK = "check"  # the topics against the tables


@dataclass(frozen=True)
class Act:
    """An SQL text in a session, or what is done to walstream."""

    kind: Kind
    sql: str = ""
    session: int = 0
    # what a stop because of it may name: tables without their schema, publications
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = (
            f"[{self.session}] {self.sql.replace(chr(10), chr(10) + ' ' * 20)}"
            if self.sql
            else ""
        )
        return f"{self.kind.value:<11} {what}".rstrip()
