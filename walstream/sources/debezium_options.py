"""Options of Debezium's formats, and of others' encodings, of a sink and its source."""

from typing import TYPE_CHECKING

from walstream import __version__
from walstream.config.debezium import NARROW
from walstream.config.registry import Registry
from walstream.config.sink import KafkaSinkConfig, RoutedSink
from walstream.formats import DEBEZIUM
from walstream.formats.encodings import JSON

if TYPE_CHECKING:
    from walstream.formats.debezium import DebeziumOptions
    from walstream.formats.debezium.options import Adjustment


def debezium_options(
    sink: RoutedSink, source: str, database: str
) -> "DebeziumOptions | None":
    """Return what a sink's records are made by; None: they are in no schema's form."""
    if sink.format not in DEBEZIUM:
        if not isinstance(sink, KafkaSinkConfig) or sink.encoding == JSON:
            return None
        from walstream.formats.encodings.op.schema import op_options  # noqa: PLC0415

        adjust: Adjustment = "avro" if sink.encoding in NARROW else "none"
        return op_options(source, database, adjust)
    from walstream.formats.debezium import DebeziumOptions  # noqa: PLC0415 - few need it

    told, registry = sink.debezium, registry_of(sink)
    return DebeziumOptions(
        name=told.name or source,
        database=database,
        schemas=told.schemas,
        decimal=told.decimal,
        time=told.time,
        interval=told.interval,
        hstore=told.hstore,
        binary=told.binary,
        unknown=told.unknown,
        unavailable=told.unavailable,
        money_digits=told.money_digits,
        adjust=told.adjust,
        adjust_fields=told.adjust_fields,
        transaction_block=told.transaction_block,
        position_header=told.position_header,
        version=told.version or f"walstream {__version__}",
        deletes=told.deletes,
        add_fields=tuple(told.add_fields),
        add_prefix=told.add_prefix,
        all_optional=registry is not None and registry.optional == "all",
    )


def registry_of(sink: RoutedSink) -> Registry | None:
    """Return the registry of a sink's schemas, if it has any."""
    if isinstance(sink, KafkaSinkConfig) and sink.encoding != JSON:
        return sink.registry
    return None


def debezium_key_form(sink: RoutedSink, source: str) -> str:
    """Name all that decides the bytes of a sink's keys, and so their partitions."""
    told = sink.debezium
    form: list[str] = [
        told.adjust_fields,
        told.decimal,
        told.time,
        told.interval,
        told.binary,
    ]
    if isinstance(sink, KafkaSinkConfig) and sink.encoding != JSON:
        # a key begins with its schema's id, and has its names in that
        form += [sink.encoding, told.name or source, told.adjust]
        form.append(str(told.money_digits))
    if told.schemas:
        form += ["schemas", told.name or source, told.adjust, str(told.money_digits)]
    return "debezium " + " ".join(form)
