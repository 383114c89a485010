"""Any walk of changes, looked at now and then: no row that was kept out goes unseen.

The model plays a catalog: each change gives rows new marks as PostgreSQL does, and
notes at each step which table's rows and operations would not be sent.
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from walstream.postgres.continuity import compare
from walstream.postgres.publication_facts import OPERATIONS, Sighting

TABLES = (1, 2, 3)  # the third is partitioned, into 30
LEAF = 30
EVERY = frozenset(OPERATIONS)

LOOK = ("look", 0)
one_step = st.one_of(
    st.tuples(
        st.sampled_from(["toggle", "filter", "schema", "move"]), st.sampled_from(TABLES)
    ),
    st.tuples(st.sampled_from(["publish", "owner", "attach"]), st.just(0)),
)
# a look, a change, a look; or one that is undone before the next look
walks = st.lists(
    st.one_of(
        one_step.map(lambda step: [step]),
        one_step.map(lambda step: [LOOK, step, step, LOOK]),
        st.just([LOOK]),
    ),
    max_size=10,
).map(lambda parts: [step for part in parts for step in part])


@dataclass
class Catalog:
    """One publication, of tables by name and of one schema."""

    next: int = 100  # oid and xid at once
    xmin: int = 100
    operations: frozenset[str] = EVERY
    named: dict[int, tuple[int, bool]] = field(default_factory=dict)  # row, filtered?
    schema: int = 0  # the row that publishes it; 0: none
    inside: dict[int, int] = field(default_factory=dict)  # tie, of those in it
    leaf: int = 100  # ties the partition; 0: it is detached
    owner: int = 10
    lines: int = 1  # of the publication's page

    def mark(self) -> int:
        self.next += 1
        return self.next

    def sent(self, table: int) -> frozenset[str]:
        """Tell which operations on whole rows of a table go out."""
        if table == LEAF:
            return self.sent(3) if self.leaf else frozenset()
        whole = table in self.named and not self.named[table][1]
        if whole or (self.schema and table in self.inside):
            return self.operations
        return frozenset()

    def step(self, what: str, table: int) -> None:
        if what == "toggle":
            if self.named.pop(table, None) is None:
                self.named[table] = self.mark(), False
        elif what == "filter" and table in self.named:
            self.named[table] = self.mark(), not self.named[table][1]
        elif what == "schema":
            self.schema = 0 if self.schema else self.mark()
        elif what == "move":
            if self.inside.pop(table, None) is None:
                self.inside[table] = self.mark()
        elif what in {"publish", "owner"}:
            if what == "publish":
                less = frozenset({"insert"})
                self.operations = EVERY if self.operations == less else less
            self.xmin = self.mark()
            self.owner += what == "owner"
            self.lines += 1
        elif what == "attach":
            self.leaf = 0 if self.leaf else self.mark()

    def seen(self) -> Sighting:
        ways: dict[int, set[str]] = {}
        for table, (row, part) in self.named.items():
            way = f"row {row} {row}{' part' if part else ''}"
            ways.setdefault(table, set()).add(way)
        for table, tie in self.inside.items():
            if self.schema:
                way = f"schema {self.schema} {self.schema} {tie}"
                ways.setdefault(table, set()).add(way)
        leaves = {3: {LEAF: str(self.leaf)}} if 3 in ways and self.leaf else {}
        return Sighting(
            oid=9,
            operations=self.operations,
            via_root=True,
            tables=frozenset(self.named),
            owner=self.owner,
            xmin=self.xmin,
            last=(0, self.lines),
            ways={table: frozenset(found) for table, found in ways.items()},
            leaves=leaves,
            schemas=frozenset({f"schema {self.schema} {self.schema}"} - {"schema 0 0"}),
            place=(0, self.lines),
            places=frozenset({(0, self.lines)}),
        )


@given(walks)
def test_no_row_that_was_kept_out_goes_unseen(walk: list[tuple[str, int]]) -> None:
    catalog = Catalog()
    catalog.named = {table: (catalog.mark(), False) for table in TABLES}
    then, left = catalog.seen(), frozenset[str]()
    held = {table: catalog.sent(table) for table in (*TABLES, LEAF)}
    kept_out: set[int] = set()
    for what, table in (*walk, LOOK):
        if what != "look":
            catalog.step(what, table)
            for one, operations in held.items():
                if not operations <= catalog.sent(one):
                    kept_out.add(3 if one == LEAF else one)
            continue
        found = compare({"p": then}, {"p": catalog.seen()}, left)
        if found.lost:
            return  # nothing is read on
        # out of the publication: said; else named as one of which rows may be missing
        away = {int(key.partition("/")[0]) for key in found.left}
        assert kept_out <= found.missed.keys() | found.gone | away, (
            then,
            catalog.seen(),
        )
        then, left, kept_out = catalog.seen(), found.left, set()
        held = {one: catalog.sent(one) for one in held}


@given(walks)
def test_what_comes_back_after_any_number_of_looks_is_named(
    walk: list[tuple[str, int]],
) -> None:
    catalog = Catalog()
    catalog.named = {table: (catalog.mark(), False) for table in TABLES}
    then, left = catalog.seen(), frozenset[str]()
    out: set[int] = set()  # tables that were out since a look saw them in
    for what, table in walk:
        if what != "look":
            catalog.step(what, table)
            continue
        now = catalog.seen()
        found = compare({"p": then}, {"p": now}, left)
        if found.lost:
            return
        back = out & now.ways.keys()
        assert back <= found.missed.keys()
        out = (out | (then.ways.keys() - now.ways.keys())) - now.ways.keys()
        then, left = now, found.left


def test_the_model_is_seen_to_keep_rows_out() -> None:
    catalog = Catalog()
    catalog.named = {table: (catalog.mark(), False) for table in TABLES}
    for what, table in (("toggle", 1), ("filter", 2), ("attach", 0)):
        assert catalog.sent({"attach": LEAF}.get(what, table)) == EVERY
        catalog.step(what, table)
        assert catalog.sent({"attach": LEAF}.get(what, table)) == frozenset()
