"""The form of records: Debezium's modes, Connect's converters, existing rows."""

from typing import Final, get_args

from walstream.admin.connector import registry_converter
from walstream.admin.connector.draft import Draft
from walstream.config.debezium import Debezium

JSON_CONVERTERS: Final = (
    "org.apache.kafka.connect.json.JsonConverter",
    "JsonConverter",
)
_MODES: Final = {
    "decimal.handling.mode": "decimal",
    "time.precision.mode": "time",
    "interval.handling.mode": "interval",
    "hstore.handling.mode": "hstore",
    "binary.handling.mode": "binary",
    "schema.name.adjustment.mode": "adjust",
    "field.name.adjustment.mode": "adjust_fields",
}
_SNAPSHOTS: Final = {
    "initial": ("initial", ""),
    "exported": ("initial", ""),
    "initial_only": ("only", ""),
    "no_data": ("never", ""),
    "never": ("never", ""),
}
_OTHER_SNAPSHOTS: Final = {
    "always": "walstream reads existing rows once; walstream backfill reads them again",
    "when_needed": "where changes are lost walstream stops (3) and says so; walstream "
    "backfill reads tables again",
    "configuration_based": "write initial, only or never",
    "custom": "a class of Java; write initial, only or never",
}
_OPERATIONS: Final = {"c": "insert", "u": "update", "d": "delete"}
_REGISTRY: Final = (
    "walstream writes keys and values alike, in JSON, in Avro or with JSON Schema: "
    "readers of these topics would break; stay with Debezium, or change the readers"
)
_NULLS: Final = (
    "a null of a column with a default stays null, where Connect writes the default"
)
_TRUTH: Final = {"true": True, "false": False}


def translate(draft: Draft) -> None:
    """Write the options of the format, and of existing rows."""
    _name(draft)
    for key, name in _MODES.items():
        _mode(draft, key, name)
    _flag(draft, "include.unknown.datatypes", "unknown")
    if draft.get("unavailable.value.placeholder"):
        _placeholder(draft)
    if draft.get("money.fraction.digits"):
        _number(draft, "money.fraction.digits", "money_digits")
    _tombstones(draft)
    _skipped(draft)
    _snapshot(draft)


def _name(draft: Draft) -> None:
    name = draft.get("topic.prefix") or draft.get("database.server.name")
    key = "topic.prefix" if draft.get("topic.prefix") else "database.server.name"
    draft.put(key, "debezium", "name", name)


def choices(name: str) -> tuple[str, ...]:
    """Return the values that an option of the format may have."""
    return get_args(Debezium.model_fields[name].annotation)


def _mode(draft: Draft, key: str, name: str) -> None:
    value = draft.get(key).lower()
    if not value:
        return
    if value in choices(name):
        draft.put(key, "debezium", name, value)
    else:
        draft.decide(
            key, f"{value!r} is none of {', '.join(choices(name))}: values would differ"
        )


def truth(draft: Draft, key: str, default: bool = False) -> bool | None:  # noqa: FBT001, FBT002
    """Return a boolean of Java's; None, and a word about it, where it is none."""
    value = draft.get(key).lower()
    if not value:
        return default
    if value not in _TRUTH:
        draft.decide(key, f"{value!r} is neither true nor false")
    return _TRUTH.get(value)


def _flag(draft: Draft, key: str, name: str) -> None:
    value = truth(draft, key)
    if value is not None and draft.get(key):
        draft.put(key, "debezium", name, value)


def _placeholder(draft: Draft) -> None:
    key = "unavailable.value.placeholder"
    value = draft.get(key)
    if value.startswith("hex:"):
        try:
            value = bytes.fromhex(value.removeprefix("hex:")).decode()
        except ValueError:
            draft.decide(key, "it is not the hexadecimal of a text")
            return
    draft.put(key, "debezium", "unavailable", value)


def _number(draft: Draft, key: str, name: str) -> None:
    if not draft.get(key).isdecimal():
        draft.decide(key, "it is not a number")
        return
    draft.put(key, "debezium", name, int(draft.get(key)))


def _tombstones(draft: Draft) -> None:
    key = "tombstones.on.delete"
    value = truth(draft, key, default=True)
    if draft.get(key) and value is not None:
        draft.put(key, "sink", "tombstones", value)


def _skipped(draft: Draft) -> None:
    key = "skipped.operations"
    if not draft.get(key):
        return
    letters = {one.strip().lower() for one in draft.get(key).split(",") if one.strip()}
    if unknown := letters - {*_OPERATIONS, "t", "none", "r"}:
        draft.decide(key, f"{', '.join(sorted(unknown))}: no operation of Debezium's")
        return
    draft.put(key, "sink", "on_truncate", "skip" if "t" in letters else "send")
    skipped = letters & _OPERATIONS.keys()
    if skipped:
        kept = [name for one, name in _OPERATIONS.items() if one not in skipped]
        kept.append("truncate")
        draft.handlers.append({"kind": "filter", "operations": kept})
        draft.became(key, f"handler filter: {', '.join(kept)} pass")


def _snapshot(draft: Draft) -> None:
    key = "snapshot.mode"
    mode = draft.get(key, "initial").lower()
    taken = "a slot that is taken over sends no older rows"
    if mode in _SNAPSHOTS:
        draft.put(key, "source", "backfill", _SNAPSHOTS[mode][0], taken)
        return
    draft.tables["source"]["backfill"] = "initial"
    what = _OTHER_SNAPSHOTS.get(mode, "no mode of Debezium 3.5")
    draft.decide(key, f'{mode!r}: backfill = "initial" is written: {what}')


def converters(draft: Draft) -> None:
    """Write whether records have schemas, of what the converters say."""
    if registry_converter.translate(draft):
        return
    schemas: dict[str, bool] = {}
    for side in ("key", "value"):
        found = _converter(draft, f"{side}.converter")
        if found is not None:
            schemas[side] = found
    written = schemas.get("key", schemas.get("value", True))
    for side, wanted in schemas.items():
        key = f"{side}.converter.schemas.enable"
        if wanted == written:
            draft.put(key, "debezium", "schemas", written)
        else:
            draft.decide(
                key,
                f"schemas is {str(written).lower()} for keys and values alike, as keys "
                "have it: rows stay in their partitions, but values change",
            )
    draft.tables["debezium"]["schemas"] = written


def _converter(draft: Draft, side: str) -> bool | None:
    """Return whether a converter writes schemas; None: it is not JSON's, or unknown."""
    name = draft.get(side)
    if not name:
        if not draft.file.worker_known:
            draft.decide(
                side,
                "the worker's file has it, add --worker FILE; without it schemas = "
                "true is written, as JsonConverter's default is",
            )
        else:
            draft.decide(side, "neither the connector nor the worker names one")
        return None
    if name not in JSON_CONVERTERS:
        known = name.rpartition(".")[2]
        draft.decide(side, f"{known}: {_REGISTRY}")
        for key in draft.file.entries:
            if key.startswith(f"{side}."):
                draft.inert(key, f"an option of {known}")
        return None
    replaces = draft.get(f"{side}.replace.null.with.default").lower() != "false"
    remark = _NULLS if replaces and side.startswith("value") else ""
    draft.became(side, f'format = "{draft.text("sink", "format")}", in JSON', remark)
    for key in draft.file.entries:
        if key.startswith(f"{side}."):
            _converter_option(draft, key, key.removeprefix(f"{side}."))
    return truth(draft, f"{side}.schemas.enable", default=True)


def _converter_option(draft: Draft, key: str, name: str) -> None:
    value = draft.get(key).lower()
    if name == "replace.null.with.default" and value == "false":
        draft.became(key, "a null stays null, as always in walstream")
    elif name == "replace.null.with.default":
        draft.decide(key, "a null stays null, also in a column with a default")
    elif name == "decimal.format" and value == "numeric":
        draft.decide(
            key,
            'decimals are base64 with decimal = "precise"; decimal.handling.mode '
            "double or string has no bytes",
        )
    elif name == "schemas.cache.size":
        draft.inert(key, "schemas are made once for each table")
    elif name == "decimal.format":
        draft.became(key, "base64, as always in walstream")
    elif name != "schemas.enable":
        draft.decide(key, "walstream's JSON has no such option")
