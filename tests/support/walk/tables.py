"""The tables of a walk, and what is written into them."""

# ruff: noqa: S608 - SQL of constants

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

WRITERS: Final = 3
_KEYS: Final = 5  # of each writer: few, so that the same rows are met again and again

# texts of one number that PostgreSQL holds for equal, or that need care in a text
_SPELLINGS: Final[dict[str, Callable[[int], tuple[str, ...]]]] = {
    "int": lambda n: (f"{n}",),
    "text": lambda n: (f"k {n}\\ \"'", f"k {n}\\ \"'"),
    "citext": lambda n: (f"Key{n}", f"kEY{n}", f"KEY{n}"),
    "numeric": lambda n: (f"{n}", f"{n}.0", f"{n}.00"),
    "float8": lambda n: ("0", "-0") if n == 0 else (f"{n}.5", f"{n}5e-1"),
    "interval": lambda n: (f"{n} days", f"{24 * n} hours", f"{1440 * n} minutes"),
    "char(6)": lambda n: (f"c{n}", f"c{n}   "),
    "jsonb": lambda n: (f'{{"a": {n}.0}}', f'{{"a": {n}}}', f'{{"a": {n}.00}}'),
}
TYPES: Final = tuple(_SPELLINGS)
BY_CODE: Final = "coded"
"""In the name of a table: its records go by `code`, which is in no primary key."""

REGIONS: Final = ("east", "west", "north")


_TOASTED: Final = (
    "(SELECT string_agg(md5({} || i::text), '') FROM generate_series(1, 90) AS i)",
)
_NOTES: Final = (*_TOASTED, *_TOASTED, "NULL", "''", "'short'")


def spelt(choose: random.Random, type_: str, number: int) -> str:
    """Write one of the texts of a key's value, as a literal."""
    text = choose.choice(_SPELLINGS[type_](number))
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


@dataclass
class Table:
    """One table as the walk has made it; `leaves` of a partitioned one by region."""

    name: str
    type: str  # of its key
    schema: str = "public"
    key: str = "id"
    note: str = "note"  # the column that is toasted
    added: list[str] = field(default_factory=list)
    leaves: dict[str, str] = field(default_factory=dict)
    detached: dict[str, str] = field(default_factory=dict)
    young: bool = False  # made since the last check: maybe no look found it yet
    made: int = 0  # leaves, columns and keys that were made so far

    @property
    def at(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def partitioned(self) -> bool:
        return bool(self.leaves or self.detached)

    @property
    def parts(self) -> list[str]:
        """The table, and those leaves that are attached."""
        return [self.at, *(f"public.{leaf}" for leaf in self.leaves.values())]

    def fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def creation(self) -> str:
        """Write the SQL; each of its indexes may become the identity."""
        columns = (
            f"{self.key} {self.type} NOT NULL, region text NOT NULL,"
            f" code text NOT NULL, n int, {self.note} text"
        )
        if not self.partitioned:
            return (
                f"CREATE TABLE {self.at} ({columns}, PRIMARY KEY ({self.key}));"
                f"CREATE UNIQUE INDEX {self.name}_code ON {self.at} (code);"
                f"ALTER TABLE {self.at} ALTER {self.note} SET STORAGE EXTERNAL"
            )
        return (
            f"CREATE TABLE {self.at} ({columns}, PRIMARY KEY ({self.key}, region))"
            f" PARTITION BY LIST (region);"
            f"CREATE UNIQUE INDEX {self.name}_code ON {self.at} (code, region);"
            f"ALTER TABLE {self.at} ALTER {self.note} SET STORAGE EXTERNAL;"
            + ";".join(self.leaf_creation(region) for region in self.leaves)
        )

    def leaf_creation(self, region: str) -> str:
        """Write the SQL of a leaf; every other has its columns in another order."""
        leaf = self.leaves[region]
        if len(self.added) == 0 and len(leaf) % 2:
            return (
                f"CREATE TABLE public.{leaf} ({self.note} text, gone int, n int,"
                f" code text NOT NULL, region text NOT NULL,"
                f" {self.key} {self.type} NOT NULL);"
                f"ALTER TABLE public.{leaf} DROP gone;"
                f"ALTER TABLE public.{leaf} ALTER {self.note} SET STORAGE EXTERNAL;"
                f"ALTER TABLE {self.at} ATTACH PARTITION public.{leaf}"
                f" FOR VALUES IN ('{region}')"
            )
        return (
            f"CREATE TABLE public.{leaf} PARTITION OF {self.at}"
            f" FOR VALUES IN ('{region}')"
        )


def write(choose: random.Random, table: Table, writer: int) -> str:
    """Write a statement on rows that no other writer touches."""
    do = choose.choices(
        (_insert, _count, _annotate, _move, _recode, _delete, _many),
        (34, 18, 8, 16, 5, 15, 4),
    )[0]
    return do(choose, table, writer)


def carry(choose: random.Random, table: Table, region: str = "") -> Iterator[str]:
    """Write a row with a long value, and change its key.

    In one region of a partitioned table, where there are such.
    """
    yield from _carry(choose, table, region, *_two(choose))


def churn(choose: random.Random, table: Table, region: str = "") -> Iterator[str]:
    """Do that, and change the row in ways that its key and its long value depend on."""
    writer, one, other = _two(choose)
    yield from _carry(choose, table, region, writer, one, other)
    for _ in range(choose.randint(0, 4)):
        number = choose.choice([one, other])
        this = _is(choose, table, number)
        yield choose.choice(
            [
                f"UPDATE {table.at} SET n = n + 1 WHERE {this}",
                f"UPDATE {table.at} SET code = {_code(choose, writer)} WHERE {this}",
                f"UPDATE {table.at} SET {table.note} = 'short' WHERE {this}",
                _moved(choose, table, number, choose.choice([one, other])),
                f"DELETE FROM {table.at} WHERE {this}",
            ]
        )


def _two(choose: random.Random) -> tuple[int, int, int]:
    """Choose a writer, and two of its keys."""
    writer = choose.randrange(WRITERS)
    first, second = choose.sample(range(_KEYS), 2)
    return writer, first * WRITERS + writer, second * WRITERS + writer


def _carry(  # noqa: PLR0913, PLR0917 - what is written
    choose: random.Random,
    table: Table,
    region: str,
    writer: int,
    one: int,
    other: int,
) -> Iterator[str]:
    where = [region or choose.choice(sorted(table.leaves) or ["none"])]
    these = f"{_is(choose, table, one)} OR {_is(choose, table, other)}"
    yield f"DELETE FROM {table.at} WHERE {these}"
    yield _insert_row(choose, table, writer, one, where, _TOASTED)
    yield f"UPDATE {table.at} SET n = 7 WHERE {_is(choose, table, one)}"
    yield _moved(choose, table, one, choose.choice([one, other, other]))


def _number(choose: random.Random, writer: int) -> int:
    return choose.randrange(_KEYS) * WRITERS + writer


def _note(choose: random.Random, kinds: Sequence[str] = _NOTES) -> str:
    return choose.choice(kinds).format(choose.random())


def _code(choose: random.Random, writer: int) -> str:
    return f"'{'abc'[writer]}{choose.randrange(10**9)}'"


def _region(
    choose: random.Random, table: Table, regions: Sequence[str] = REGIONS
) -> str:
    return f"'{choose.choice(regions)}'" if table.partitioned else "'x'"


def _is(choose: random.Random, table: Table, number: int) -> str:
    return f"{table.key} = {spelt(choose, table.type, number)}"


def _this(choose: random.Random, table: Table, writer: int) -> str:
    return _is(choose, table, _number(choose, writer))


def _insert(choose: random.Random, table: Table, writer: int) -> str:
    number = _number(choose, writer)
    return _insert_row(choose, table, writer, number, REGIONS, _NOTES)


def _insert_row(  # noqa: PLR0913, PLR0917 - what a row is made of
    choose: random.Random,
    table: Table,
    writer: int,
    number: int,
    regions: Sequence[str],
    notes: Sequence[str],
) -> str:
    key = spelt(choose, table.type, number)
    names = ", ".join([table.key, "region", "code", "n", table.note, *table.added])
    values = [
        f"{key}::{table.type}",
        _region(choose, table, regions),
        _code(choose, writer),
        f"{choose.randrange(9)}",
        _note(choose, notes),
        *(f"{choose.randrange(100)}" for _ in table.added),
    ]
    return (
        f"INSERT INTO {table.at} ({names}) SELECT {', '.join(values)}"
        f" WHERE NOT EXISTS (SELECT FROM {table.at} WHERE {table.key} = {key})"
    )


def _count(choose: random.Random, table: Table, writer: int) -> str:
    column = choose.choice(["n", "n", *table.added])
    value = choose.choice(["NULL", "7", "n + 1"])
    this = _this(choose, table, writer)
    return f"UPDATE {table.at} SET {column} = {value} WHERE {this}"


def _annotate(choose: random.Random, table: Table, writer: int) -> str:
    this = _this(choose, table, writer)
    return f"UPDATE {table.at} SET {table.note} = {_note(choose)} WHERE {this}"


def _move(choose: random.Random, table: Table, writer: int) -> str:
    """Change a key: to another value, or to another spelling of the same."""
    number = _number(choose, writer)
    to = choose.choice([number, _number(choose, writer)])
    return _moved(choose, table, number, to)


def _moved(choose: random.Random, table: Table, number: int, to: int) -> str:
    this, that = (spelt(choose, table.type, one) for one in (number, to))
    free = f" AND NOT EXISTS (SELECT FROM {table.at} WHERE {table.key} = {that})"
    return (
        f"UPDATE {table.at} SET {table.key} = {that} WHERE {table.key} = {this}"
        f"{'' if to == number else free}"
    )


def _recode(choose: random.Random, table: Table, writer: int) -> str:
    """Change a column of the other index; or the partition."""
    what = f"code = {_code(choose, writer)}"
    if table.partitioned and choose.random() < 0.5:
        what = f"region = {_region(choose, table)}"
    return f"UPDATE {table.at} SET {what} WHERE {_this(choose, table, writer)}"


def _delete(choose: random.Random, table: Table, writer: int) -> str:
    return f"DELETE FROM {table.at} WHERE {_this(choose, table, writer)}"


def _many(choose: random.Random, table: Table, writer: int) -> str:
    mine = f"code LIKE '{'abc'[writer]}%'"
    if choose.random() < 0.5:
        return f"UPDATE {table.at} SET n = n + 1 WHERE {mine}"
    return f"DELETE FROM {table.at} WHERE {mine} AND n > 6"
