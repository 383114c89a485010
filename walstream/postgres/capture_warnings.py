"""Warnings about publications and tables that are not captured whole, each once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from walstream.errors import Repair
from walstream.postgres import publication, replica_identity
from walstream.postgres.catalog import TableFacts
from walstream.postgres.publication import Publication
from walstream.postgres.publication_steps import unwanted
from walstream.postgres.selection import Selection
from walstream.postgres.table_pattern import WHY, unmatched
from walstream.postgres.warning_once import WarningOnce
from walstream.telemetry.human import few


@dataclass(frozen=True, slots=True)
class CaptureWarnings:
    """Warnings of one source."""

    wanted: Selection
    teller: WarningOnce

    def of_plan(
        self, plan: publication.PublicationPlan, facts: Mapping[str, TableFacts]
    ) -> None:
        """Log patterns, and of tables that are not captured as they are wanted."""
        patterns = (*self.wanted.patterns, *self.wanted.exclude)
        for pattern, what in unmatched(patterns, facts).items():
            self.teller.warn(pattern, f"pattern {what}", hint=WHY, kind="pattern")
        for name, reason in plan.refused.items():
            self.teller.warn(
                name,
                "table cannot be captured",
                hint=reason,
                repair=Repair(sql=publication.set_logged(facts[name])),
            )
        for name, reason in plan.misfits.items():
            self.teller.warn(name, "table cannot be captured", hint=reason)
        for name, table in publication.swallowed(self.wanted, facts).items():
            self.teller.warn(
                name,
                f"partition is excluded, but its rows go out as those of {table.root}",
                hint="exclude the root, or detach the partition",
            )

    def of_unwanted(
        self, found: Sequence[Publication], facts: Mapping[str, TableFacts]
    ) -> None:
        """Log tables that are sent although `tables` does not name them."""
        if names := unwanted(self.wanted, found, facts):
            self.teller.warn(
                found[0].name,
                f"tables are sent, although `tables` does not name them: {few(names)}",
                hint="name them in `tables`; or take them out of the publication; or "
                "set another `publication`, and reset the source: walstream creates it",
                kind="publication",
            )

    def of_generated(self, found: Sequence[Publication]) -> None:
        """Log publications that leave generated columns out, or not all alike."""
        repair = Repair(sql=publication.with_generated(found))
        if len({made.generated for made in found}) > 1:
            self.teller.warn(
                found[0].name,
                "publications differ in publish_generated_columns",
                hint="PostgreSQL decodes no change of a table with generated columns "
                "that is in both: it stays in one",
                repair=repair,
                kind="publication",
            )
        elif self.wanted.generated and repair:
            self.teller.warn(
                found[0].name,
                "publication does not publish stored generated columns",
                hint="walstream sets this only where it creates the publication; rows "
                "sent before lack them: walstream backfill TABLE",
                repair=repair,
                kind="publication",
            )

    def of_nothing(self, made: Publication, facts: Mapping[str, TableFacts]) -> None:
        """Log a publication that publishes nothing."""
        if not made.empty:
            self.teller.forget(made.name)
            return
        self.teller.warn(
            made.name,
            f"publication {publication.EMPTY}",
            hint="add tables to it, or name them in `tables`",
            repair=Repair(sql=publication.filling(made.name, facts)),
            kind="publication",
        )

    def of_no_identity(
        self, table: TableFacts, culprits: Iterable[TableFacts], *, read: bool
    ) -> None:
        """Log a table whose updates and deletes are not captured."""
        what = "only its inserts are captured" if read else "it is not captured"
        self.teller.warn(
            table.full_name,
            f"table has no replica identity: {what}",
            hint="give it a primary key, or another replica identity",
            repair=Repair(
                sql="\n".join(filter(None, map(replica_identity.cure, culprits)))
            ),
        )
