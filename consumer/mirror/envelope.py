"""Ops that came in envelopes of Debezium, or by a schema, as a mirror takes them.

Of an old row they say too much: what was not sent is null there, or empty. Only the
columns of the record's key are certain.
"""

import logging
from typing import Final

from consumer.handler import Transaction
from consumer.mirror.envelope_fit import Fit, fit, forms, load, unit_fit
from consumer.mirror.errors import stop
from consumer.mirror.table_shape import TargetTable
from consumer.op import EnvelopeOp, RegisteredOp
from walstream.op import Kind

_log: Final = logging.getLogger("consumer.mirror")


def take_in(tx: Transaction, shape: TargetTable, op: EnvelopeOp | RegisteredOp) -> None:
    """Make an op's texts those of the target's types; stop at what would be wrong."""
    if op.kind is Kind.TRUNCATE:
        return
    if isinstance(op, RegisteredOp):
        if not op.has_units:
            _refuse_without_units(tx, shape, op)
        return
    fitting = _fit(tx, shape, op)
    if fitting.misfit is not None:
        raise stop(op, fitting.misfit.what, fitting.misfit.hint)
    if op.old:
        _refuse_uncertain(shape, op, fitting)
    op.convert(fitting.conversions)


def truncates(op: EnvelopeOp, *, skip: bool) -> bool:
    """Return whether the table is to be emptied: not where `skip` is wished.

    Stops where rows of other partitions have no order with it.
    """
    table, count = op.table.full_name, op.topic_partitions
    repair = f"empty it there, then run on the source: walstream backfill {table}"
    if skip:
        _log.warning("a TRUNCATE of %s is skipped: %s", table, repair)
        return False
    if count == 1:
        return True
    raise stop(
        op,
        f"a TRUNCATE in one of {count or 'several'} partitions of {op.record.topic}:"
        " rows of the others may be older or newer",
        f"start with skip_truncates=True (--skip-truncates); {repair}",
    )


def _fit(tx: Transaction, shape: TargetTable, op: EnvelopeOp) -> Fit:
    """Look once at each form that a table's records have."""
    name = (op.table.columns, forms(op))
    found = shape.fits.get(name)
    if found is None:
        if shape.types is None:
            shape.types = load(tx, shape.schema, shape.name)
        _warn_of_defaults(op)
        found = shape.fits[name] = fit(shape.types, *name)
    return found


def _refuse_without_units(
    tx: Transaction, shape: TargetTable, op: RegisteredOp
) -> None:
    name = (op.table.columns, ())
    found = shape.fits.get(name)
    if found is None:
        if shape.types is None:
            shape.types = load(tx, shape.schema, shape.name)
        found = shape.fits[name] = unit_fit(shape.types, op.table.columns)
    if found.misfit is not None:
        raise stop(op, found.misfit.what, found.misfit.hint)


def _warn_of_defaults(op: EnvelopeOp) -> None:
    """Name the columns in which Connect's converter may have replaced a null.

    Nothing in a record tells whether it did; walstream never does.
    """
    named = () if op.exact or op.schemas is None else op.schemas.items()
    columns = [
        name
        for name, schema in named
        if schema.get("optional") and schema.get("default") is not None
    ]
    if columns:
        _log.warning(
            "%s: a NULL of %s comes as the column's default, unless the connector of"
            " Debezium has value.converter.replace.null.with.default = false",
            op.table.full_name,
            ", ".join(columns),
        )


def _refuse_uncertain(shape: TargetTable, op: EnvelopeOp, fitting: Fit) -> None:
    """Stop where the old row is to be found by what may not have been sent."""
    if shape.key:
        unsure = [name for name in shape.key if name not in op.key_names]
        if unsure:
            raise stop(
                op,
                f"the record's key lacks {', '.join(unsure)} of the target's key, and"
                " an old row of Debezium's does not say what was not sent of it",
                "give the target the key of the records, or mirror the table from a"
                ' topic of format "op"',
            )
        return
    if op.record.key is not None:
        raise stop(
            op,
            "the target has no key, and the records have one: an old row of Debezium's"
            " does not say what was not sent of it",
            "create the source's primary key in the target",
        )
    if not op.exact and op.topic_partitions != 1:
        raise stop(
            op,
            "the row has no key, and Debezium spreads such rows over all partitions of"
            f" {op.record.topic}, where they have no order",
            "give the topic one partition, or the table a key, and begin with an empty"
            " target",
        )
    if not fitting.printed:
        raise stop(
            op,
            "a row without a key is found by its texts, and Debezium's records do not"
            " have PostgreSQL's texts of all its columns",
            'create a key in source and target, or mirror a topic of format "op"',
        )
