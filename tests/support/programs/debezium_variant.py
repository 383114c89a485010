"""What Debezium and walstream are told, so that both write the same records."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from psycopg.conninfo import conninfo_to_dict

from tests.support.fixtures.postgres import Database
from tests.support.servers.apicurio import LocalRegistry
from tests.support.servers.connect import postgres_source
from walstream.config.debezium import Debezium
from walstream.formats.debezium import DebeziumOptions

OURS: Final = "ws."
"""What precedes Debezium's name of a topic in walstream's."""
MESSAGE, TRANSACTION = "message", "transaction"
"""What ends the names of the topics that are of no table."""
THEIR_HEARTBEAT: Final = "hb"
"""What precedes a connector's name in the topic of its heartbeats."""
_HEARTBEAT_MS: Final = 1000
_SPELT: Final = {
    "decimal": "decimal.handling.mode",
    "time": "time.precision.mode",
    "interval": "interval.handling.mode",
    "hstore": "hstore.handling.mode",
    "binary": "binary.handling.mode",
    "unknown": "include.unknown.datatypes",
    "unavailable": "unavailable.value.placeholder",
    "money_digits": "money.fraction.digits",
    "adjust": "schema.name.adjustment.mode",
    "adjust_fields": "field.name.adjustment.mode",
    "transaction_block": "provide.transaction.metadata",
}
_WRITES: Final = {
    ".apicurio.registry.auto-register": "true",
    # else ids are in headers: walstream's stand before the data, as Confluent's
    ".apicurio.registry.headers.enabled": "false",
}
"""What a converter needs that not only reads."""
_UNWRAP: Final = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
}


@dataclass(frozen=True)
class Variant:
    """One configuration of both; its options' name is only a word."""

    options: DebeziumOptions
    unwrapped: bool = False
    truncates: bool = False
    heartbeat: bool = False

    @property
    def word(self) -> str:
        return self.options.name

    def in_avro(self) -> Self:
        """Return what a registry goes with: Avro has no names but its own."""
        options = replace(
            self.options, schemas=False, adjust="avro", adjust_fields="avro"
        )
        return replace(self, options=options)

    def connector(self, registry: LocalRegistry | None = None) -> dict[str, object]:
        """Return what Debezium is told of these options; Avro with a registry."""
        told = asdict(self.options)
        found: dict[str, object] = {
            spelt: _spelt(told[name]) for name, spelt in _SPELT.items()
        }
        converter = {**registry.converter, **_WRITES} if registry else self._json
        for side in ("key", "value"):
            found |= {f"{side}.converter{name}": one for name, one in converter.items()}
        if self.heartbeat:
            found["heartbeat.interval.ms"] = _HEARTBEAT_MS
            found["topic.heartbeat.prefix"] = THEIR_HEARTBEAT
        found["skipped.operations"] = "none" if self.truncates else "t"
        if self.unwrapped:
            prefix = "transforms.unwrap."
            found |= _UNWRAP
            found["tombstones.on.delete"] = "false"
            found[f"{prefix}delete.tombstone.handling.mode"] = self.options.deletes
            if self.options.add_fields:
                fields = ",".join(self.options.add_fields)
                found[f"{prefix}add.fields"] = fields
            found[f"{prefix}add.fields.prefix"] = self.options.add_prefix
        return found

    @property
    def _json(self) -> dict[str, str]:
        return {
            "": "org.apache.kafka.connect.json.JsonConverter",
            ".schemas.enable": str(self.options.schemas).lower(),
        }

    def sink(self, name: str, registry: LocalRegistry | None = None) -> dict[str, Any]:
        """Return what walstream is told of these options."""
        told = asdict(self.options)
        told |= {"name": name, "add_fields": list(self.options.add_fields)}
        told = {key: one for key, one in told.items() if key in Debezium.model_fields}
        del told["version"]
        if not self.unwrapped:
            for other in ("deletes", "add_fields", "add_prefix"):
                del told[other]
        others: dict[str, Any] = {}
        if not self.unwrapped:
            prefixes = {"prefixes": ["*"], "topic": f"{OURS}{name}.{MESSAGE}"}
            others["messages"] = prefixes
        if self.options.transaction_block:
            others["txinfo"] = f"{OURS}{name}.{TRANSACTION}"
        if self.heartbeat:
            told["heartbeat"] = f"{_HEARTBEAT_MS}ms"
        if registry:
            others |= {"encoding": "avro", "registry": {"url": registry.url}}
        return {
            **others,
            "format": "debezium_row" if self.unwrapped else "debezium",
            "topic": f"{OURS}{name}.{{schema}}.{{table}}",
            "on_truncate": "send" if self.truncates else "skip",
            "debezium": told,
        }


def _spelt(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def connector(
    variant: Variant,
    database: Database,
    name: str,
    publication: str,
    registry: LocalRegistry | None = None,
) -> dict[str, object]:
    """Return a connector's configuration; its slot and topics begin with its name."""
    told = conninfo_to_dict(database.dsn)
    return {
        **postgres_source(name, int(told["port"] or 0), database.name),
        **variant.connector(registry),
        "publication.name": publication,
        "topic.creation.default.replication.factor": 1,
        "topic.creation.default.partitions": 1,
    }
