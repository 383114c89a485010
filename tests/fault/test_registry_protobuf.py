"""Records in protobuf while tables change and the registry dies: none is lost.

Numbers of fields are looked at in all versions that the registry got: each is of one
column for ever.
"""

import random
import time
from collections.abc import Iterator

import pytest

from tests.fault.test_registry import (
    _SEED,
    Rows,
    raw,
    streamed,
    verify,
)
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Reader
from tests.support.servers.apicurio import LocalRegistry
from walstream.formats.encodings.protobuf import parsed_proto

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]

_STORM_SHORT = 12
_STORM_LONG = 150
_AWAY_S = 4.0
_TYPES = ["text", "int", "numeric(9, 2)", "timestamptz", "uuid", "int[]", "point"]


def alterations(choose: random.Random) -> Iterator[str]:
    """Yield statements: columns come, go, come back and get other names."""
    there: dict[str, str] = {}
    gone: dict[str, str] = {}
    for number in range(10_000):
        kind = choose.choice(["add", "add", "drop", "rename", "again"])
        if kind == "again" and gone:
            name = choose.choice([*gone])
            there[name] = gone.pop(name)
            yield f"ALTER TABLE t ADD {name} {there[name]}"
        elif kind == "drop" and there:
            name = choose.choice([*there])
            gone[name] = there.pop(name)
            yield f"ALTER TABLE t DROP {name}"
        elif kind == "rename" and there:
            name = choose.choice([*there])
            there[f"r{number}"] = there.pop(name)
            yield f"ALTER TABLE t RENAME {name} TO r{number}"
        else:
            there[f"c{number}"] = choose.choice(_TYPES)
            yield f"ALTER TABLE t ADD c{number} {there[f'c{number}']}"


def numbers(url: str, subject: str) -> dict[int, str]:
    """Return whose each number is; in no version it is another column's."""
    owners: dict[int, str] = {}
    owned: dict[str, int] = {}
    with RegisteredReader(url) as read:
        for version in read.client.get_versions(subject):
            text = read.client.get_version(subject, version).schema.schema_str
            rows = parsed_proto(str(text)).first.message("Value")
            assert rows is not None
            for field in rows.fields:
                assert owners.setdefault(field.number, field.name) == field.name
                assert owned.setdefault(field.name, field.number) == field.number
    return owners


@pytest.mark.parametrize("level", ["BACKWARD", "FULL", ""])
@pytest.mark.parametrize(
    "alters",
    [
        _STORM_SHORT,
        pytest.param(
            _STORM_LONG, marks=[pytest.mark.fault_long, pytest.mark.takes(300)]
        ),
    ],
)
def test_a_storm_of_changed_columns_loses_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
    level: str,
    alters: int,
) -> None:
    told = {"compatibility": level, "encoding": "protobuf"}
    statements = alterations(random.Random(_SEED))  # noqa: S311 - a test's load
    with streamed(database, runs, registry, topic_prefix, **told):
        with Rows(database.dsn) as rows:
            for _, statement in zip(range(alters), statements, strict=False):
                rows.wait_for_more(3)
                database.execute(statement)
            rows.wait_for_more(3)
        shapes = verify(database, kafka, registry.url, topic_prefix)
    assert shapes > alters / 4
    assert len(numbers(registry.url, f"{topic_prefix}public.t-value")) > alters / 4


@pytest.mark.parametrize("changes", [False, True], ids=["as it is", "a new column"])
def test_a_registry_that_is_killed_loses_nothing(  # noqa: PLR0913 - fixtures
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
    *,
    changes: bool,
) -> None:
    """Shapes of before flow on, with their numbers; a new column waits for it."""
    subject = f"{topic_prefix}public.t-value"
    told = {"encoding": "protobuf"}
    with streamed(database, runs, own_registry, topic_prefix, **told) as walstream:
        with (
            Reader(kafka.bootstrap, topic_prefix, raw) as reader,
            Rows(database.dsn) as rows,
        ):
            reader.until(bool)
            for statement in ("ADD w int", "DROP n", "RENAME w TO u", "ADD n int"):
                database.execute(f"ALTER TABLE t {statement}")
                rows.wait_for_more(5)
            # a registry that has the last may not have answered yet
            reader.until(lambda found: len({one.value[1:5] for one in found}) == 5)
            own_registry.kill()
            if changes:
                database.execute("ALTER TABLE t ADD x text")
                rows.wait_for_more(20)
                walstream.until("waiting for the schema registry")
            known = len(reader.read())
            end = time.monotonic() + _AWAY_S
            wait_until(lambda: time.monotonic() > end, _AWAY_S + 10, "it was away")
            walstream.kill()  # what it knows, it knows at the next start, too
            walstream.start()
            walstream.streaming()
            if changes:
                walstream.until("waiting for the schema registry")
            else:
                reader.until(lambda found: len(found) > known)
            own_registry.start()
            if changes:
                walstream.until("the schema registry answers")
            rows.wait_for_more(20)
        verify(database, kafka, own_registry.url, topic_prefix)
    wanted = {1: "id", 2: "v", 3: "n", 4: "w", 5: "u"}
    assert numbers(own_registry.url, subject) == wanted | ({6: "x"} if changes else {})
