"""The producer's properties are librdkafka's; passwords are in files."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.connector import translated, undecided
from walstream.admin.connector.draft import Draft

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "


def produced(properties: dict[str, str]) -> tuple[dict[str, Any], Draft, list[str]]:
    given = {f"producer.override.{key}": value for key, value in properties.items()}
    draft, references = translated(given, output=Path("/nowhere/w.toml"))
    made = dict(draft.tables["producer"])
    assert made.pop("bootstrap.servers") == "localhost:9092"
    return made, draft, list(references.files.values())


def test_properties_are_renamed() -> None:
    made, draft, _ = produced(
        {
            "linger.ms": "5",
            "send.buffer.bytes": "9",
            "buffer.memory": "1048576",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "compression.lz4.level": "9",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert made == {
        "linger.ms": "5",
        "socket.send.buffer.bytes": "9",
        "queue.buffering.max.kbytes": "1024",
        "compression.type": "zstd",
        "compression.level": "7",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert not undecided(draft)


def test_what_could_lose_records_has_no_effect() -> None:
    made, draft, _ = produced(
        {"acks": "1", "retries": "0", "enable.idempotence": "false"}
    )
    assert not made
    assert not undecided(draft)


def test_rows_stay_in_their_partitions_or_it_is_told() -> None:
    _, draft, _ = produced({"partitioner.ignore.keys": "false"})
    assert draft.tables["sink"]["partitioner"] == "murmur2_random"
    assert not undecided(draft)
    for name, value in (
        (
            "partitioner.class",
            "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        ),
        ("partitioner.ignore.keys", "true"),
        ("interceptor.classes", "org.Own"),
    ):
        _, draft, _ = produced({name: value})
        assert undecided(draft) == [f"producer.override.{name}"]


def test_a_login_is_taken_apart() -> None:
    config = LOGIN + r'username="app" password="a\"b";'
    made, _, secrets = produced({"sasl.jaas.config": config})
    assert made["sasl.username"] == "app"
    assert made["sasl.password"].startswith("${file:/nowhere/w.sasl.jaas.config")
    assert secrets == ['a"b']
    made, _, secrets = produced(
        {"sasl.jaas.config": f"{LOGIN}username=app password='${{env:PW}}';"}
    )
    assert made["sasl.password"] == "${env:PW}"
    assert not secrets


def test_another_login_is_told_without_its_secret() -> None:
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required s3cret=x;"
    made, draft, secrets = produced({"sasl.jaas.config": kerberos})
    assert not made
    assert not secrets
    assert "s3cret" not in str(list(draft.reports()))
    assert undecided(draft) == ["producer.override.sasl.jaas.config"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        (
            {"ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"},
            {"ssl.certificate.location": "/k", "ssl.key.location": "/k"},
        ),
        ({"ssl.keystore.location": "/k.p12"}, {"ssl.keystore.location": "/k.p12"}),
        ({"ssl.truststore.location": "/ca.jks"}, None),
        ({"ssl.keystore.location": "/k.jks"}, None),
    ],
)
def test_stores_of_keys(given: dict[str, str], made: dict[str, str] | None) -> None:
    found, draft, _ = produced(given)
    assert found == (made or {})
    assert bool(undecided(draft)) is (made is None)


def test_a_private_key_is_in_a_file() -> None:
    made, draft, secrets = produced({"ssl.keystore.key": "-----BEGIN KEY-----"})
    assert made == {"ssl.key.pem": "${file:/nowhere/w.ssl.keystore.key}"}
    assert secrets == ["-----BEGIN KEY-----"]
    assert all("BEGIN" not in report.text for report in draft.reports())
