"""What is dangerous together, and seldom meets by itself: acts that belong together."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator

from tests.walking.act import Act, Kind
from tests.walking.changes import Changes, ddl, identity


class Compounds(Changes):
    """Draws several changes as one."""

    def compound(self) -> Iterator[Act]:
        """Do what is dangerous together, and seldom meets by itself."""
        kind = self.choose.choice(
            ("root_alone", "leaf_alone", "renamed_key", "edit_unseen", "leaf_unseen")
        )
        if kind not in self.without:
            yield from getattr(self, f"_{kind}")()

    def _root_alone(self) -> Iterator[Act]:
        """Change a root's identity, and have its rows come again."""
        table = self.table(partitioned=True)
        for leaf in table.parts[1:]:
            yield ddl(table, identity(leaf, "FULL"))
        before, after = self.choose.choice(
            [("DEFAULT", "INDEX"), ("INDEX", "DEFAULT"), ("INDEX", "FULL")]
        )
        yield ddl(table, identity(table.at, before))
        yield from self.rows(table)
        yield ddl(table, identity(table.at, after))
        yield from self.rows(table)
        yield Act(Kind.KILL)
        yield Act(Kind.START)
        yield from self.rows(table)

    def _leaf_alone(self) -> Iterator[Act]:
        """Have the old rows of one leaf hold less than the root's identity says."""
        table = self.table(partitioned=True)
        leaf = self.choose.choice(table.parts)
        root, part = self.choose.choice(
            [("FULL", "DEFAULT"), ("FULL", "INDEX"), ("DEFAULT", "INDEX")]
        )
        yield ddl(table, identity(table.at, root))
        yield ddl(table, identity(leaf, part), leaf.rpartition(".")[2])
        yield from self.rows(table)
        yield from self.rows(table)

    def _renamed_key(self) -> Iterator[Act]:
        """Rename the key of a table that does not tell it, and write at once."""
        table = self.table()
        for part in table.parts:
            yield ddl(table, identity(part, "FULL"))
        yield from self.rows(table)
        stopped = self.choose.random() < 0.5
        if stopped:
            yield Act(self.choose.choice([Kind.STOP, Kind.KILL]))
        before, table.key = table.key, table.fresh("key")
        yield ddl(table, f"ALTER TABLE {table.at} RENAME {before} TO {table.key}")
        yield from self.rows(table)
        if stopped:
            yield Act(Kind.START)

    def _edit_unseen(self) -> Iterator[Act]:
        """Edit the publication and undo it, while nobody looks."""
        if "publication" in self.without:
            return
        yield Act(self.choose.choice([Kind.STOP, Kind.KILL]))
        yield from self.publication()
        yield Act(Kind.START)

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
        yield from self.rows(table)
