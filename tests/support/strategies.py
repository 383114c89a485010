"""What hypothesis draws: messages, rows and whole streams, as PostgreSQL may send."""

from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from walstream.lsn import MAX
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.pgoutput import (
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.row import OMITTED, UNCHANGED, Value, any_absent
from walstream.testing import keepalive, transaction

lsns: Final = st.integers(0, MAX)
oids: Final = st.integers(0, 2**32 - 1)
times: Final = st.integers(-(2**63), 2**63 - 1)
# a server's text holds neither NUL nor a lone surrogate
texts: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)
names: Final = texts.filter(bool)
values: Final[st.SearchStrategy[Value]] = st.none() | texts
toasted: Final[st.SearchStrategy[Value]] = values | st.just(UNCHANGED)
rows: Final = st.lists(values, max_size=5)
toasted_rows: Final = st.lists(toasted, max_size=5)

columns: Final = st.builds(
    Column,
    is_key=st.booleans(),
    name=names,
    type_oid=oids,
    type_modifier=st.integers(-(2**31), 2**31 - 1),
)


def _insert(oid: int, new: list[Value]) -> Insert:
    return Insert(oid, new, UNCHANGED in new)


def _update(oid: int, old: list[Value] | None, whole: bool, new: list[Value]) -> Update:
    return Update(oid, old, whole and old is not None, new, UNCHANGED in new)


messages: Final[st.SearchStrategy[Message]] = st.one_of(
    st.builds(Begin, final_lsn=lsns, commit_time=times, xid=oids),
    st.builds(
        Commit,
        flags=st.integers(0, 255),
        commit_lsn=lsns,
        end_lsn=lsns,
        commit_time=times,
    ),
    st.builds(Origin, commit_lsn=lsns, name=texts),
    st.builds(
        Relation,
        oid=oids,
        namespace=names,
        name=names,
        replica_identity=st.sampled_from("dnfi"),
        columns=st.lists(columns, max_size=4),
    ),
    st.builds(Type, oid=oids, namespace=names, name=names),
    st.builds(_insert, oids, toasted_rows),
    st.builds(_update, oids, st.none() | rows, st.booleans(), toasted_rows),
    st.builds(Delete, relation_oid=oids, old=rows, old_whole=st.booleans()),
    st.builds(
        Truncate,
        options=st.integers(0, 255),
        relation_oids=st.lists(oids, max_size=4).map(tuple),
    ),
    st.builds(
        LogicalMessage,
        transactional=st.booleans(),
        lsn=lsns,
        prefix=texts,
        content=st.binary(max_size=20),
    ),
)


@st.composite
def ops(draw: st.DrawFn) -> ReplicationOp:
    """Draw any op, of texts."""
    columns = tuple(draw(st.lists(names, min_size=1, max_size=4, unique=True)))
    schema = draw(st.just("public") | names)
    table = Table(schema=schema, name=draw(names), columns=columns)
    absent = draw(st.sampled_from(([], [OMITTED, UNCHANGED])))
    value = st.sampled_from([None, *absent]) | texts
    row = st.lists(value, min_size=len(columns), max_size=len(columns))
    kind = draw(st.sampled_from(Kind))
    old = new = None
    if kind in (Kind.UPDATE, Kind.DELETE):
        old = draw(st.none() | row if kind is Kind.UPDATE else row)
    if kind in (Kind.UPDATE, Kind.INSERT):
        new = draw(row)
    return ReplicationOp(
        kind=kind,
        table=table,
        lsn=draw(lsns),
        seq_id=draw(st.integers(0, 2**63)),
        old=old,
        new=new,
        absent=any_absent(old) or any_absent(new),
        snapshot=draw(st.booleans()) if kind is Kind.INSERT else False,
        partitions=draw(st.integers(1, 100)) if kind is Kind.TRUNCATE else 0,
        commit_time=draw(times),
    )


@dataclass(frozen=True)
class Stream:
    """Transactions as frames, and the end LSN of each."""

    start: int
    transactions: list[list[bytes]]
    commits: list[int]
    ends: list[int]

    def frames(self, resume: int = 0) -> list[bytes]:
        """List what the server sends from `resume` on: whole transactions only."""
        return [
            frame
            for lsn, frames in zip(self.commits, self.transactions, strict=True)
            if lsn >= resume
            for frame in frames
        ]


_KEYED: Final = Relation(
    1, "public", "t", "d", [Column(True, "id", 20, -1), Column(False, "v", 25, -1)]
)
_FULL: Final = Relation(
    2, "s", "f", "f", [Column(True, "id", 20, -1), Column(True, "v", 25, -1)]
)
_ALTERED: Final = Relation(1, "public", "t", "d", [Column(True, "id", 20, -1)])

_ids: Final = st.sampled_from("123456")


@st.composite
def _change(draw: st.DrawFn) -> list[Message]:
    """Draw one change of one row; each describes its relation anew."""
    one, two = draw(_ids), draw(_ids)
    value = draw(toasted)
    kinds: list[list[Message]] = [
        [_KEYED, _insert(1, [one, draw(values)])],
        [_KEYED, _update(1, None, False, [one, value])],
        [_KEYED, _update(1, [one, None], False, [two, value])],
        [_KEYED, Delete(1, [one, None], False)],
        [_ALTERED, _insert(1, [one])],
        [_FULL, _update(2, [one, draw(values)], True, [two, value])],
        [_FULL, Delete(2, [one, draw(values)], True)],
        [_KEYED, _FULL, Truncate(1, (2, 1))],
        [LogicalMessage(True, 1, "p", b"c"), Type(9, "public", "mood")],
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Draw a slot's stream: transactions in commit order, keepalives between."""
    start = lsn = draw(st.integers(1, 2**40))
    transactions, commits, ends = [], [], []
    for changes in draw(st.lists(st.lists(_change(), max_size=6), max_size=6)):
        lsn += draw(st.integers(0, 100))  # the next commit may begin where one ends
        end = lsn + draw(st.integers(1, 100))
        frames = transaction(lsn, *(m for some in changes for m in some), end_lsn=end)
        if draw(st.booleans()):
            frames.append(keepalive(end, reply=draw(st.booleans())))
        transactions.append(frames)
        commits.append(lsn)
        ends.append(end)
        lsn = end
    return Stream(start, transactions, commits, ends)


@dataclass(frozen=True)
class KeyKind:
    """A type of keys of which equal values print differently.

    `spellings` are groups of literals: those of a group are one key, each of them
    printed as it is written here, and keys of two groups differ.
    """

    type: str
    spellings: tuple[tuple[str, ...], ...]
    before: str = ""  # SQL that the type needs
    icu: bool = False  # servers without ICU lack it

    def keys(self) -> st.SearchStrategy[str]:
        """Draw any spelling of any key."""
        return st.sampled_from(self.spellings).flatmap(st.sampled_from)


_COMPOSITE: Final = "CREATE TYPE pair AS (a numeric, b text)"
_DOMAIN: Final = "CREATE DOMAIN price AS numeric CHECK (value >= 0)"
_COLLATION: Final = (
    "CREATE COLLATION no_case"
    " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
)

RESPELT: Final = {
    "citext": KeyKind(
        "citext",
        (("User7", "user7", "USER7"), ("a", "A"), ("b",)),
        "CREATE EXTENSION citext",
    ),
    "numeric": KeyKind(
        "numeric", (("1", "1.0", "1.00"), ("0", "0.000"), ("-2.5", "-2.50"))
    ),
    "float8": KeyKind("float8", (("-0", "0"), ("1.5",), ("NaN",))),
    "float4": KeyKind("float4", (("-0", "0"), ("1.5",))),
    "interval": KeyKind(
        "interval",
        (("1 day", "24:00:00"), ("1 mon", "30 days", "720:00:00"), ("00:00:01",)),
    ),
    "bpchar": KeyKind("bpchar", (("ab", "ab ", "ab   "), ("b", "b "))),
    "jsonb": KeyKind(
        "jsonb",
        (('{"a": 1}', '{"a": 1.0}'), ("1", "1.00"), ('"x"',), ("[1, 2]", "[1.0, 2]")),
    ),
    "numeric[]": KeyKind("numeric[]", (("{1,2}", "{1.0,2}", "{1.0,2.00}"), ("{1}",))),
    "float8[]": KeyKind("float8[]", (("{0}", "{-0}"), ("{1,0}", "{1,-0}"))),
    "numrange": KeyKind("numrange", (("[1,2)", "[1.0,2)", "[1,2.00)"), ("(1,2)",))),
    "composite": KeyKind(
        "pair", (("(1,x)", "(1.0,x)", "(1.00,x)"), ("(2,x)", "(2.0,x)")), _COMPOSITE
    ),
    "composite[]": KeyKind(
        "pair[]", (('{"(1,x)"}', '{"(1.0,x)"}'), ('{"(2,x)"}',)), _COMPOSITE
    ),
    "domain": KeyKind("price", (("1", "1.0"), ("3", "3.000")), _DOMAIN),
    "collation": KeyKind(
        "text COLLATE no_case", (("User7", "user7"), ("a", "A")), _COLLATION, icu=True
    ),
}
"""Kinds of keys by what they are of; each needs a database of its own for `before`."""

ONE_WAY: Final = {
    "int8": KeyKind("int8", (("1",), ("2",), ("9",))),
    "text": KeyKind("text", (("a",), ("A",), ("a ",))),
    "uuid": KeyKind("uuid", (("00000000-0000-0000-0000-000000000001",),)),
    "timetz": KeyKind("timetz", (("12:00:00+00",), ("13:00:00+01",))),
    "inet": KeyKind("inet", (("10.0.0.1",), ("10.0.0.1/8",))),
}
"""Kinds of which equal keys print alike."""
