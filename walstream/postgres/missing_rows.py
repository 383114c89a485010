"""Repair of tables with rows that may be missing from the stream."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from walstream.errors import PublicationLost, Repair
from walstream.postgres.catalog import TableFacts
from walstream.telemetry.human import few

_MOST_NAMED: Final = 50  # a longer command nobody reads: all tables are cheaper


@dataclass(frozen=True, slots=True)
class Mending:
    """The rule of a source, and whom to ask."""

    source: str = ""
    reread: bool = False  # on_publication_change = "reread"
    elsewhere: bool = False  # who watches the source sees to all that
    # has tables read anew beside the stream; None: nobody does
    ask: Callable[[Sequence[str]], None] | None = None
    # those that this start reads anew in any case
    asked: Callable[[], Collection[str]] = frozenset

    def refusal(
        self, missed: Mapping[str, str], facts: Mapping[str, TableFacts]
    ) -> PublicationLost | None:
        """Return the error for these tables; None if they are read again."""
        if self.elsewhere:
            return None
        names: Collection[str] = missed
        hint = (
            "this command reads them again, deletes included; or set "
            'on_publication_change = "reread" and run does it; or start from scratch: '
            "walstream positions reset"
        )
        if self.reread:
            names = self.keyless(missed, facts)
            if not names:
                return None
            hint = (
                "without a row key they cannot be read while the source streams: this "
                "command reads them; or start from scratch: walstream positions reset"
            )
        said = {name: missed[name] for name in names}
        return PublicationLost(
            f"{_sentence(said)}: rows written meanwhile may be missing from the stream",
            hint=hint,
            repair=Repair(
                command=self.command(said), then="walstream run, unless it runs"
            ),
        )

    def keyless(
        self, names: Iterable[str], facts: Mapping[str, TableFacts]
    ) -> set[str]:
        """Pick the tables that cannot be read beside a stream."""
        return {name for name in names if (one := facts.get(name)) and not _keyed(one)}

    def command(self, tables: Collection[str]) -> str:
        """Return the command that reads the tables again."""
        named = sorted(tables) if len(tables) <= _MOST_NAMED else ["*.*"]
        return (
            f"walstream backfill {' '.join(map(shlex.quote, named))} --replace"
            f"{f' --source {self.source}' if self.source else ''}"
        )


def _keyed(table: TableFacts) -> bool:
    return bool(table.primary_key if table.full else table.identity)


def _sentence(missed: Mapping[str, str]) -> str:
    """Return of which tables, and why; tables of one reason together."""
    reasons: dict[str, list[str]] = {}
    for name, why in missed.items():
        reasons.setdefault(why, []).append(name)
    return "; ".join(_clause(names, why) for why, names in sorted(reasons.items()))


def _clause(names: Sequence[str], why: str) -> str:
    if len(names) == 1:
        return f"table {names[0]!r} {why}"
    return f"{len(names)} tables, {few(names)}: each {why}"
