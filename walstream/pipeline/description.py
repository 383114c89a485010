"""Questions about a table or a row before it is sent; nothing blocks."""

from typing import Final

from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.fact_check import FactCheck
from walstream.pipeline.pgoutput import Relation
from walstream.pipeline.ports import Companion

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_TABLES_KNOWN: Final = 4096


class Descriptions:
    """Completes what the stream says of tables and rows, by way of the companion."""

    def __init__(self, companion: Companion, assembler: Assembler) -> None:
        self._companion = companion
        self._assembler = assembler
        self._checks: dict[Table, FactCheck] = {}

    def describe(self, relation: Relation, xid: int) -> bool:
        """Store a Relation message with its keys and facts; False: call again."""
        place = self._assembler.place
        facts = self._companion.facts(relation, xid, place)
        if facts is None:
            return False
        keys = self._companion.keys(relation, xid, place)
        if keys is None:
            return False
        self._assembler.describe(relation, keys, facts)
        return True

    def complete(self, op: ReplicationOp) -> bool:
        """See that an op has all that its records need; False: call again."""
        if op.table.facts and not self._learn_labels(op):
            return False
        return (
            not op.absent
            # a row filter makes an insert of an update that it lets in
            or not (op.key_changed or op.kind is _INSERT)
            or self._companion.complete(op)
        )

    def _learn_labels(self, op: ReplicationOp) -> bool:
        """Ask for facts that know an op's labels, if its table's do not."""
        table = op.table
        check = self._checks.get(table)
        if check is None:
            if len(self._checks) >= _TABLES_KNOWN:
                self._checks.clear()
            check = self._checks[table] = FactCheck(table)
        labels = check.unknown(op)
        if not labels:
            return True
        relation = self._assembler.relation(op)
        place = op.lsn, op.seq_id
        facts = self._companion.facts(relation, op.xid, place, labels)
        if facts is None:
            return False
        self._assembler.learn(op, facts)
        return True
