"""What is run on a slot that was made before: walstream in its forms, and Debezium."""

import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench import connect
from bench.place import Place
from bench.watch import Program
from walstream.testing.servers.port import free_port

LIMIT, DEBEZIUM = "pg_recvlogical", "Debezium"
TOPIC: Final = "{schema}.{table}"  # behind the slot's name
BATCHES: Final = "walsender, read in batches"
COMPILED, PURE = "walstream, compiled", "walstream, pure"
ENVELOPES: Final = "walstream, format debezium"
AVRO: Final = "walstream, encoding avro"
EVENT: Final = "walstream, format event"
TUNGSTEN: Final = "walstream, format tungsten"
TRANSACTIONAL: Final = "walstream, delivery transactional"
OURS: Final = (COMPILED, PURE)  # the faster one first
PUBLICATION: Final = "walstream"
AWAY_MS: Final = (2, 20)  # how long a Kafka in a network takes for an answer
_AS_PEER: Final = """
[sinks.kafka.debezium]
decimal = "string"
"""  # as bench.connect has it
COMMAND: Final = Path(sys.executable).with_name("walstream")


@dataclass(frozen=True)
class Variant:
    """A form in which the same walstream runs."""

    name: str
    short: str  # in names of slots, topics and files
    environment: dict[str, str] = field(default_factory=dict)
    format: str = "op"
    transactional: bool = False  # in Kafka's transactions
    registry: str = ""  # where the schemas of records in Avro are
    bootstrap: str = ""  # by which Kafka is reached, else directly
    topic: str = TOPIC
    partitions: int = 0  # of each topic; 0: as many as the bench's others have
    memory: str = "32MiB"


def variants() -> list[Variant]:
    """Give the forms that are installed, the fastest first."""
    pure = Variant(PURE, "pure", {"WALSTREAM_PURE": "1"})
    if "compiled" in version():
        return [Variant(COMPILED, "compiled"), pure]
    return [pure]


def envelopes() -> Variant:
    """Give the fastest form, writing what Debezium writes."""
    fastest = variants()[0]
    return Variant(ENVELOPES, "envelopes", fastest.environment, format="debezium")


def avro(registry: str) -> Variant:
    """Give the fastest form, writing envelopes in Avro."""
    return replace(envelopes(), name=AVRO, short="avro", registry=registry)


def plain_formats() -> list[Variant]:
    """Give the fastest form in the formats whose records are rows alone."""
    environment = variants()[0].environment
    named = ((EVENT, "event"), (TUNGSTEN, "tungsten"))
    return [Variant(name, form, environment, format=form) for name, form in named]


def away(answer_ms: int, bootstrap: str = "") -> Variant:
    """Give the fastest form, and a Kafka that answers after so long."""
    fastest = variants()[0]
    name = f"{fastest.name}, {answer_ms} ms away"
    return replace(fastest, name=name, short=f"away{answer_ms}", bootstrap=bootstrap)


def layouts() -> list[Variant]:
    """Give the fastest form, with many tables in topics of several layouts."""
    fastest = variants()[0]

    def layout(what: str, short: str, partitions: int) -> Variant:
        name = f"{fastest.name}, {what}"
        return replace(fastest, name=name, short=short, partitions=partitions)

    return [
        layout("a topic of one partition each", "one", 1),
        replace(layout("the same, memory 128MiB", "roomy", 1), memory="128MiB"),
        layout("a topic of four partitions each", "four", 4),
        replace(layout("one topic of four partitions", "single", 4), topic="all"),
    ]


def transactional() -> Variant:
    """Give the fastest form, writing in Kafka's transactions."""
    fastest = variants()[0]
    return Variant(
        TRANSACTIONAL, "transactional", fastest.environment, transactional=True
    )


def version() -> str:
    said = subprocess.run(
        [COMMAND, "--version"], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def publish(place: Place, tables: list[str]) -> None:
    named = ", ".join(tables)
    place.sql(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {named}")


def make_slot(place: Place, name: str) -> None:
    place.sql(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")


def drop_slot(place: Place, name: str) -> None:
    """Drop it as soon as its reader is gone."""
    deadline = time.monotonic() + 60
    query = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{name}'"
    while place.sql(query) == "True":
        if time.monotonic() > deadline:
            raise SystemExit(f"slot {name} is still read")
        time.sleep(0.1)
    place.sql(f"SELECT pg_drop_replication_slot('{name}')")


def walstream(place: Place, variant: Variant, name: str) -> Program:
    """Start one that reads slot `name` and writes to topics `name`.schema.table."""
    folder = place.folder / name
    folder.mkdir(exist_ok=True)
    configuration = folder / "walstream.toml"
    configuration.write_text(document(place, variant, name))
    command = (COMMAND, "run", "--adopt-slot", "-c", configuration)
    log = place.folder / f"{name}.log"
    return Program(command, log, environment=variant.environment)


def document(place: Place, variant: Variant, name: str) -> str:
    """Write the configuration of one."""
    return f"""
state = "{place.folder / name}/state"
memory = "{variant.memory}"
[http]
listen = "127.0.0.1:{free_port()}"
[sources.bench]
kind = "postgres"
dsn = "{place.postgres.dsn()}"
slot = "{name}"
publication = "{PUBLICATION}"
backfill = "never"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
topic = "{name}.{variant.topic}"
format = "{variant.format}"
encoding = "{"avro" if variant.registry else "json"}"
delivery = "{"transactional" if variant.transactional else "idempotent"}"
[sinks.kafka.producer]
"bootstrap.servers" = "{variant.bootstrap or place.kafka.bootstrap}"
{_AS_PEER if variant.format == "debezium" else ""}
{_registered(variant.registry) if variant.registry else ""}"""


def _registered(url: str) -> str:
    return f'[sinks.kafka.registry]\nurl = "{url}"'


def debezium(
    place: Place, linger_ms: int, name: str, *, envelopes: bool = False
) -> Program:
    """Start one on slot `name`, likewise; it unwraps rows unless told otherwise."""
    form = {} if envelopes else connect.UNWRAPPED
    settings = {**form, "publication.name": PUBLICATION}
    command = connect.command(place, name, settings, linger_ms)
    return Program(command, place.folder / f"{name}.log")
