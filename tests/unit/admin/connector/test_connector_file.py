"""A connector is read from what Connect, its REST API and Debezium Server take."""

import json
from pathlib import Path

import pytest

from walstream.admin.connector.connector_file import CONNECTOR, read
from walstream.errors import ConfigError

OWN = f"connector.class={CONNECTOR}\nslot.name = dbz \n"
SERVER = """
debezium.source.connector.class=io.debezium.connector.postgresql.PostgresConnector
debezium.source.database.user=Zoé
debezium.source.offset.storage.file.filename=offsets.dat
debezium.sink.type=kafka
debezium.sink.kafka.producer.linger.ms=5
debezium.format.schemas.enable=false
debezium.format.value.schemas.enable=true
debezium.transforms=unwrap
debezium.transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState
quarkus.http.port=8080
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_properties_and_json_are_the_same_connector(tmp_path: Path) -> None:
    config = {"connector.class": CONNECTOR, "slot.name": "dbz", "tasks.max": 1}
    found = [
        read(written(tmp_path, "c.properties", f"name=app\n{OWN}tasks.max=1")),
        read(written(tmp_path, "c.json", json.dumps({"name": "app", **config}))),
        read(
            written(
                tmp_path,
                "r.json",
                json.dumps({"name": "app", "config": config, "tasks": []}),
            )
        ),
    ]
    for one in found:
        assert one.entries == {
            "name": "app",
            "connector.class": CONNECTOR,
            "slot.name": "dbz",
            "tasks.max": "1",
        }
        assert not one.worker_known


def test_debezium_servers_keys_are_those_of_connect(tmp_path: Path) -> None:
    found = read(written(tmp_path, "application.properties", SERVER))
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    assert found.entries == {
        "connector.class": CONNECTOR,
        "database.user": "Zoé",
        "producer.override.linger.ms": "5",
        "key.converter": json_converter,
        "value.converter": json_converter,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "true",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }
    assert found.shown("database.user") == "debezium.source.database.user"
    assert (
        found.shown("key.converter.schemas.enable") == "debezium.format.schemas.enable"
    )
    assert set(found.foreign) == {
        "debezium.source.offset.storage.file.filename",
        "debezium.sink.type",
        "quarkus.http.port",
    }
    assert found.server
    assert found.worker_known


def test_a_worker_gives_what_the_connector_does_not_say(tmp_path: Path) -> None:
    worker = written(
        tmp_path,
        "worker.properties",
        "bootstrap.servers=b:1\nkey.converter=K\nkey.converter.schemas.enable=false\n"
        "value.converter=V\nproducer.linger.ms=1\nproducer.acks=all\ngroup.id=g\n"
        "config.providers=file\n",
    )
    own = f"{OWN}value.converter=W\nproducer.override.linger.ms=2\n"
    found = read(written(tmp_path, "c.properties", own), worker)
    assert found.entries == {
        "connector.class": CONNECTOR,
        "slot.name": "dbz",
        "value.converter": "W",
        "producer.override.linger.ms": "2",
        "producer.override.bootstrap.servers": "b:1",
        "producer.override.acks": "all",
        "key.converter": "K",
        "key.converter.schemas.enable": "false",
        "config.providers": "file",
    }
    assert found.shown("producer.override.acks") == "producer.acks (worker)"
    assert {"group.id (worker)", "value.converter (worker)"} < set(found.foreign)
    assert found.worker_known


def test_options_of_a_converter_that_is_not_named_do_not_count(tmp_path: Path) -> None:
    text = f"{OWN}value.converter.schemas.enable=false\n"
    worker = written(
        tmp_path, "w", "value.converter=V\nvalue.converter.schemas.enable=true"
    )
    found = read(written(tmp_path, "c.properties", text), worker)
    assert found.entries["value.converter.schemas.enable"] == "true"
    assert "reads it only beside" in found.foreign["value.converter.schemas.enable"]


def test_text_is_latin_1_as_in_connect_and_keys_may_stand_twice(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_bytes(f"{OWN}database.user=Zo\xe9\nslot.name=x\n".encode("latin-1"))
    found = read(path)
    assert found.entries["database.user"] == "Zoé"
    assert found.entries["slot.name"] == "x"
    assert found.twice == {"slot.name"}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("c.json", "{", "not valid JSON"),
        ("c.json", "[" * 9999, "not valid JSON"),
        ("c.json", "[]", "is not a connector"),
        ("c.json", '{"config": {}, "x": 1}', "stands beside"),
        ("c.json", '{"connector.class": ["s3cret"]}', "neither a text"),
        ("c.properties", "a=\\u00s3cret", "hexadecimal"),
        ("c.properties", "a=b", "no connector.class"),
        ("c.properties", "connector.class=io.debezium.MySql", "MySql"),
        ("c.properties", "debezium.sink.type=kinesis\ndebezium.source.a=b", "kinesis"),
    ],
)
def test_what_is_no_such_connector_is_refused(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        read(written(tmp_path, name, text))
    assert "s3cret" not in str(refused.value)


def test_files_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.json")
    large = tmp_path / "large.properties"
    large.write_bytes(b"#" * (1 << 20) + b"##")
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read(large)
    server = written(tmp_path, "application.properties", SERVER)
    with pytest.raises(ConfigError, match="no worker"):
        read(server, server)


def test_of_a_server_what_its_profile_says_counts(tmp_path: Path) -> None:
    text = (
        "%prod.debezium.source.table.include.list=a.b\n"
        "%dev.debezium.source.slot.name=dev\n"
        "%prod.debezium.source.database.user=app\n"
    )
    found = read(written(tmp_path, "application.properties", text + SERVER))
    assert found.entries["table.include.list"] == "a.b"
    assert found.entries["database.user"] == "app"
    assert "slot.name" not in found.entries
    assert found.shown("database.user") == "%prod.debezium.source.database.user"
    assert "another profile" in found.foreign["%dev.debezium.source.slot.name"]
