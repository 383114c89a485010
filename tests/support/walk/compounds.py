"""What is dangerous together, and seldom meets by itself: acts that belong together."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator
from typing import Final

from tests.support.walk.act import Act, Kind
from tests.support.walk.changes import Changes, ddl, identity
from tests.support.walk.tables import BY_CODE, Table, carry, churn

KINDS: Final = (
    "root_alone",
    "leaf_alone",
    "renamed_key",
    "key_behind",
    "long_value",
    "edit_unseen",
    "edit_between",
    "leaf_unseen",
)


class Compounds(Changes):
    """Draws several changes as one."""

    def compound(self) -> Iterator[Act]:
        """Do what is dangerous together, and seldom meets by itself."""
        kind = self.choose.choice(KINDS)
        if kind not in self.without:
            yield from getattr(self, f"_{kind}")()
            if self.choose.random() < 0.5:
                yield Act(Kind.CHECK)

    def _churn(self, table: Table, region: str = "") -> Iterator[Act]:
        """Write rows that are there."""
        for sql in churn(self.choose, table, region):
            yield Act(Kind.ROWS, sql)

    def _end(self) -> Act:
        return Act(self.choose.choice([Kind.STOP, Kind.KILL]))

    def _behind(self) -> tuple[list[Act], list[Act]]:
        """Have walstream not read for a while, or so: what begins and ends that."""
        dice = self.choose.random()
        if dice < 0.4:
            return [Act(Kind.FREEZE)], [Act(Kind.THAW)]
        return ([self._end()], [Act(Kind.START)]) if dice < 0.8 else ([], [])

    def _root_alone(self) -> Iterator[Act]:
        """Change a root's identity, and have its rows come again."""
        table = self.table(partitioned=True)
        region = self.choose.choice(sorted(table.leaves) or [""])
        for leaf in table.parts[1:]:
            yield ddl(table, identity(leaf, "FULL"))
        before, after = self.choose.choice(
            [("DEFAULT", "INDEX"), ("INDEX", "DEFAULT"), ("INDEX", "FULL")]
        )
        yield ddl(table, identity(table.at, before))
        yield from self._churn(table, region)
        yield ddl(table, identity(table.at, after))
        yield from self._churn(table, region)
        yield Act(Kind.KILL)
        yield Act(Kind.START)
        yield from self._churn(table, region)

    def _leaf_alone(self) -> Iterator[Act]:
        """Have the old rows of one leaf hold less than the root's identity says."""
        table = self.table(partitioned=True)
        if not table.leaves:
            return
        region = self.choose.choice(sorted(table.leaves))
        leaf = table.leaves[region]
        root, part = self.choose.choice(
            [("FULL", "DEFAULT"), ("FULL", "INDEX"), ("DEFAULT", "INDEX")]
        )
        yield ddl(table, identity(table.at, root))
        yield ddl(table, identity(f"public.{leaf}", part), leaf)
        yield from self._churn(table, region)
        yield from self.rows(table)

    def _renamed_key(self) -> Iterator[Act]:
        """Rename the key of a table that does not tell it, and write at once."""
        table = self.table()
        for part in table.parts:
            yield ddl(table, identity(part, "FULL"))
        yield from self._churn(table)
        begin, end = self._behind()
        yield from begin
        yield self._rename_column(table, "key")
        yield from self._churn(table)
        yield from end

    def _rename_column(self, table: Table, which: str) -> Act:
        before, after = getattr(table, which), table.fresh(which)
        setattr(table, which, after)
        return ddl(table, f"ALTER TABLE {table.at} RENAME {before} TO {after}")

    def _key_behind(self) -> Iterator[Act]:
        """Replace a key that the stream does not tell, behind rows that wait."""
        table = self.table()
        for part in table.parts:
            yield ddl(table, identity(part, "FULL"))
        yield from self._churn(table)
        begin, end = self._behind()
        yield from begin
        yield from self._churn(table)
        if self.choose.random() < 0.5:
            yield Act(Kind.OPERATOR, f"ANALYZE {table.at}")
            yield from self._churn(table)
        yield self.another_key(table)
        if self.choose.random() < 0.5:
            yield from self._churn(table)
        yield from end

    def _long_value(self) -> Iterator[Act]:
        """Change keys of rows whose long value is not sent, and rename its column."""
        table = self.table()
        if BY_CODE in table.name:
            return  # needs FULL: walstream refuses to start else, as it says
        for part in table.parts:
            yield ddl(table, identity(part, "DEFAULT"))
        begin, end = self._behind()
        yield from begin
        for sql in carry(self.choose, table):
            yield Act(Kind.ROWS, sql)
        before = table.note
        yield self._rename_column(table, "note")
        if self.choose.random() < 0.5:  # another one takes its name
            table.added.append(before)
            yield ddl(table, f"ALTER TABLE {table.at} ADD {before} int DEFAULT 5")
        yield from end
        yield Act(Kind.CHECK)  # before the row goes again

    def _edit_unseen(self) -> Iterator[Act]:
        """Edit the publication and undo it, while nobody looks."""
        if "publication" in self.without:
            return
        yield Act(Kind.CHECK)  # what came before: a stop ends all comparison
        yield self._end()
        yield from self._edited()
        yield Act(Kind.START)

    def _edit_between(self) -> Iterator[Act]:
        """Edit it and undo it while walstream runs: between two of its looks."""
        if "publication" not in self.without:
            yield Act(Kind.CHECK)
            yield from self._edited()

    def _edited(self) -> Iterator[Act]:
        table = self.table()
        if table.young:
            return  # as in `publication`
        out, back, names = self.edit(table)
        yield Act(Kind.PUBLICATION, out, names=names)
        if "UNLOGGED" not in out or self.world.named:
            yield from self._churn(table)
        yield Act(Kind.PUBLICATION, back, names=names)

    def _leaf_unseen(self) -> Iterator[Act]:
        """Take a leaf out, write into it, and put it back."""
        table = self.table(partitioned=True)
        if not table.leaves:
            return
        region = self.choose.choice(sorted(table.leaves))
        leaf = table.detached[region] = table.leaves.pop(region)
        detach = f"ALTER TABLE {table.at} DETACH PARTITION public.{leaf}"
        yield ddl(table, detach, leaf)
        yield Act(Kind.ROWS, f"UPDATE public.{leaf} SET n = 8 WHERE n < 5")
        yield from self.attach(table, region)
        yield from self._churn(table, region)
