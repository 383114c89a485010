"""What PostgreSQL 15 and 18 sent decodes to what the SQL says.

The lines were written by hand from the SQL in data/pgoutput, and are the same on both.
"""

import itertools
import re
from collections.abc import Iterable
from functools import singledispatchmethod
from typing import Final

import pytest

from tests.support.oracles.golden import CASES, VERSIONS, payloads
from walstream.lsn import show
from walstream.pipeline.pgoutput import (
    Begin,
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
    decode,
)
from walstream.row import Value

IDENTITIES: Final = {"d": "default", "f": "full", "i": "index", "n": "nothing"}
TYPES: Final = {17: "bytea", 23: "int4", 25: "text", 1043: "varchar"}

EXPECTED: Final = {
    "identity_default": """
        begin
        relation public.t default (id int4 key, n int4, v varchar/14)
        insert t ['1', '10', 'a']
        commit
        begin
        update t None -> ['1', '11', 'a']
        commit
        begin
        update t key ['1', None, None] -> ['2', '11', 'a']
        commit
        begin
        delete t key ['2', None, None]
        commit
    """,
    "identity_full": """
        begin
        relation public.t full (id int4 key, n int4 key, v varchar/14 key)
        insert t ['1', '10', None]
        commit
        begin
        update t whole ['1', '10', None] -> ['1', '11', None]
        commit
        begin
        update t whole ['1', '11', None] -> ['2', '11', None]
        commit
        begin
        delete t whole ['2', '11', None]
        commit
    """,
    "identity_index": """
        begin
        relation public.t index (id int4, code text key, n int4)
        insert t ['1', 'a', '10']
        commit
        begin
        update t None -> ['2', 'a', '10']
        commit
        begin
        update t key [None, 'a', None] -> ['2', 'b', '10']
        commit
        begin
        delete t key [None, 'b', None]
        commit
    """,
    "identity_nothing": """
        begin
        relation public.t nothing (id int4, n int4)
        insert t ['1', '10']
        commit
    """,
    "unchanged_toast": """
        begin
        relation public.d default (id int4 key, n int4, v text)
        update d None -> ['1', '11', UNCHANGED]
        commit
        begin
        update d key ['1', None, None] -> ['2', '11', UNCHANGED]
        commit
        begin
        update d None -> ['2', '11', 'short']
        commit
        begin
        relation public.f full (id int4 key, n int4 key, v text key)
        update f whole ['1', '10', 3000 * 'y'] -> ['1', '11', UNCHANGED]
        commit
    """,
    "key_change": """
        begin
        relation public.t default (a int4 key, b text key, n int4)
        insert t ['1', 'x', '10']
        insert t ['2', 'x', '20']
        commit
        begin
        update t key ['1', 'x', None] -> ['1', 'y', '11']
        update t key ['2', 'x', None] -> ['2', 'y', '21']
        commit
    """,
    "truncate_cascade": """
        begin
        relation public.child default (id int4 key, parent int4)
        truncate child options 0
        commit
        begin
        relation public.parent default (id int4 key)
        truncate parent, child options 3
        commit
    """,
    "logical_message": """
        begin
        relation public.t default (id int4 key)
        insert t ['1']
        message 'with' b'\\x00\\xff' transactional
        insert t ['2']
        commit
        message 'alone' b'' alone
        begin
        insert t ['3']
        commit
    """,
    # a domain goes under its own OID and its base type's name
    "user_types": """
        begin
        type s.mood
        type pg_catalog.int4
        type public.pair
        type s._mood
        relation public.t default (id int4 key, m mood, p int4, c pair, a _mood)
        insert t ['1', 'glad', '7', '(1,"a,b")', '{sad,glad}']
        commit
    """,
    "origin": """
        begin
        origin 'golden' 0/16B3748
        relation public.t default (id int4 key)
        insert t ['1']
        commit
    """,
    "savepoint_rollback": """
        begin
        relation public.t default (id int4 key)
        insert t ['1']
        insert t ['2']
        insert t ['4']
        commit
    """,
    "alter_in_transaction": """
        begin
        relation public.t default (id int4 key, a text, b text)
        insert t ['1', 'a1', 'b1']
        relation public.t default (id int4 key, a text, b text, c int4)
        insert t ['2', 'a2', 'b2', '8']
        relation public.t default (id int4 key, x text, c int4)
        insert t ['3', 'a3', '9']
        update t None -> ['1', 'a1', '0']
        commit
    """,
    "partitioned": """
        begin
        relation public.root default (id int4 key, n int4, v text)
        relation public.low default (id int4 key, n int4, v text)
        insert root ['1', '10', 'a']
        relation public.high default (id int4 key, n int4, v text)
        insert root ['11', '110', 'b']
        commit
        begin
        delete root key ['1', None, None]
        insert root ['12', '10', 'a']
        commit
        begin
        delete root key ['11', None, None]
        commit
        begin
        truncate root options 0
        commit
    """,
    # marked whole, as the root is FULL; logged by the leaf, which is not
    "partitioned_false_null": """
        begin
        relation public.root full (id int4 key, n int4 key, v text key)
        relation public.leaf default (id int4 key, n int4, v text)
        insert root ['1', '10', 'a']
        commit
        begin
        update root whole ['1', None, None] -> ['2', '10', 'a']
        commit
        begin
        delete root whole ['2', None, None]
        commit
    """,
    "copy": """
        begin
        relation public.t default (id int4 key, v text)
        insert t ['1', 'a']
        insert t ['2', None]
        insert t ['3', '']
        commit
    """,
    "empty_and_null": """
        begin
        relation public.t default (id int4 key, e text, n text, b bytea)
        insert t ['1', '', None, '\\\\x']
        commit
        begin
        insert t ['2', None, None, None]
        commit
    """,
    "large_value": """
        begin
        relation public.t default (id int4 key, v text)
        insert t ['1', 10240 * 'z']
        commit
    """,
    "hostile_names": """
        begin
        relation S.1.té "q" default (a b int4 key, C' text)
        insert té "q" ['1', 'é"\\\\']
        commit
    """,
    # an update that enters the filter is an insert, one that leaves it a delete
    "row_filter": """
        begin
        relation public.t default (id int4 key, v text)
        insert t ['6', UNCHANGED]
        commit
        begin
        delete t key ['6', None]
        commit
    """,
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


class Reader:
    """Prints messages as the lines above."""

    def __init__(self) -> None:
        self._types = dict(TYPES)
        self._relations: dict[int, str] = {}

    @singledispatchmethod
    def line(self, message: Message) -> str:
        raise TypeError(type(message).__name__)

    @line.register
    def _begin(self, _: Begin) -> str:
        return "begin"

    @line.register
    def _commit(self, _: Commit) -> str:
        return "commit"

    @line.register
    def _origin(self, message: Origin) -> str:
        return f"origin {message.name!r} {show(message.commit_lsn)}"

    @line.register
    def _type(self, message: Type) -> str:
        self._types[message.oid] = message.name
        return f"type {message.namespace}.{message.name}"

    @line.register
    def _insert(self, message: Insert) -> str:
        return f"insert {self._relations[message.relation_oid]} {row(message.new)}"

    @line.register
    def _update(self, message: Update) -> str:
        name = self._relations[message.relation_oid]
        old = row(message.old)
        if message.old is not None:
            old = f"{whole(message.old_whole)} {old}"
        return f"update {name} {old} -> {row(message.new)}"

    @line.register
    def _delete(self, message: Delete) -> str:
        name = self._relations[message.relation_oid]
        return f"delete {name} {whole(message.old_whole)} {row(message.old)}"

    @line.register
    def _truncate(self, message: Truncate) -> str:
        names = ", ".join(self._relations[oid] for oid in message.relation_oids)
        return f"truncate {names} options {message.options}"

    @line.register
    def _message(self, message: LogicalMessage) -> str:
        bound = "transactional" if message.transactional else "alone"
        return f"message {message.prefix!r} {message.content!r} {bound}"

    @line.register
    def _relation(self, message: Relation) -> str:
        self._relations[message.oid] = message.name
        columns = ", ".join(
            f"{column.name} {self._types[column.type_oid]}"
            + (f"/{column.type_modifier}" if column.type_modifier >= 0 else "")
            + (" key" if column.is_key else "")
            for column in message.columns
        )
        identity = IDENTITIES[message.replica_identity]
        return f"relation {message.namespace}.{message.name} {identity} ({columns})"


def whole(flag: bool) -> str:
    return "whole" if flag else "key"


def row(values: list[Value] | None) -> str:
    repeated = re.compile(r"'(.)\1{99,}'")
    return repeated.sub(
        lambda found: f"{len(found.group()) - 2} * '{found.group(1)}'", repr(values)
    )


def without_repeated_relations(found: Iterable[str]) -> list[str]:
    """Leave out what says again what is known: when it is sent is the server's."""
    kept: list[str] = []
    known: dict[str, str] = {}
    for line in found:
        if line.startswith("relation "):
            name = line.split(" (")[0]
            if known.get(name) == line:
                continue
            known[name] = line
        kept.append(line)
    return kept


def test_every_case_says_what_is_expected() -> None:
    assert sorted(EXPECTED) == CASES


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_payloads_decode_to_what_the_sql_says(case: str, version: int) -> None:
    reader = Reader()
    found = [reader.line(decode(payload)) for payload in payloads(case, version)]
    assert without_repeated_relations(found) == lines(EXPECTED[case])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_lsns_and_times_of_a_transaction_agree(case: str, version: int) -> None:
    messages = [decode(payload) for payload in payloads(case, version)]
    begins = [message for message in messages if isinstance(message, Begin)]
    commits = [message for message in messages if isinstance(message, Commit)]
    previous_end = 0
    for begin, commit in zip(begins, commits, strict=True):
        assert previous_end <= begin.final_lsn == commit.commit_lsn < commit.end_lsn
        assert begin.commit_time == commit.commit_time > 0
        assert begin.xid > 0
        assert commit.flags == 0
        previous_end = commit.end_lsn
    assert all(one.xid < two.xid for one, two in itertools.pairwise(begins))
