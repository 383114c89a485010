"""Files of TLS that make no client: which option, which file, what is wrong."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from tests.support.servers.certificate_authority import Authority, Pair
from tests.support.servers.tls import KEY_PASSWORD
from walstream.kafka.errors import unfit
from walstream.kafka.tls_files import flaw

CA, CRL = "ssl.ca.location", "ssl.crl.location"
CERTIFICATE, KEY = "ssl.certificate.location", "ssl.key.location"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.sign("bearer")


def refused(properties: dict[str, Any]) -> tuple[str, str]:
    """Tell what is said where librdkafka makes no client."""
    given = {"security.protocol": "ssl", "log_level": 0, **properties}
    with pytest.raises(KafkaException) as caught:
        Producer(given)
    error = unfit(caught.value, "sinks.k.producer", given)
    what = str(error.args[0])
    assert what.startswith("sinks.k.producer: ")
    return what.removeprefix("sinks.k.producer: "), error.hint


def bearing(pair: Pair, **more: object) -> dict[str, Any]:
    return {CERTIFICATE: str(pair.certificate), KEY: str(pair.key), **more}


@pytest.mark.parametrize("option", [CA, CRL, CERTIFICATE, KEY, "https.ca.location"])
def test_a_file_that_is_not_there_is_named(option: str, pair: Pair) -> None:
    what, hint = refused({**bearing(pair), option: "/nowhere/x.pem"})
    assert what == f"{option}: /nowhere/x.pem does not exist"
    assert hint == f"correct {option}, or put the file there"


@pytest.mark.parametrize(
    ("option", "holds"),
    [
        (CA, "certificate"),
        (CRL, "list of revoked certificates"),
        (CERTIFICATE, "certificate"),
        (KEY, "private key"),
    ],
)
def test_a_file_with_something_else_is_no_pem(
    option: str, holds: str, pair: Pair, tmp_path: Path
) -> None:
    file = tmp_path / "junk"
    file.write_bytes(b"\x30\x82junk")
    what, hint = refused({**bearing(pair), option: str(file)})
    assert what == f"{option}: {file} holds no PEM {holds}"
    assert option in hint


def test_a_key_where_a_certificate_belongs_is_told(pair: Pair) -> None:
    what, _ = refused({CA: str(pair.key)})
    assert what.endswith("holds no PEM certificate")


@pytest.mark.parametrize("option", [CERTIFICATE, KEY])
def test_a_folder_is_told(option: str, pair: Pair, tmp_path: Path) -> None:
    what, _ = refused({**bearing(pair), option: str(tmp_path)})
    assert what == f"{option}: {tmp_path} is a folder"


def test_a_key_of_another_certificate_is_told(authority: Authority, pair: Pair) -> None:
    other = authority.sign("other")
    what, hint = refused(bearing(pair) | {KEY: str(other.key)})
    assert what == f"{KEY}: {other.key} is not the key of {pair.certificate}"
    assert "pair" in hint


def test_an_encrypted_key_wants_its_password(authority: Authority) -> None:
    pair = authority.sign("bearer", password=KEY_PASSWORD)
    what, hint = refused(bearing(pair))
    assert what == f"{KEY}: {pair.key} is encrypted, and ssl.key.password is not set"
    assert hint == "set ssl.key.password"
    what, hint = refused(bearing(pair, **{"ssl.key.password": "wrong"}))
    assert what == f"{KEY}: ssl.key.password does not decrypt {pair.key}"
    assert hint.startswith("correct ssl.key.password")
    Producer(
        {"security.protocol": "ssl"}
        | bearing(pair, **{"ssl.key.password": KEY_PASSWORD})
    )


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (PermissionError(13, "Permission denied"), "cannot be read by user "),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
    ],
)
def test_a_file_that_may_not_be_read_names_the_user(
    raised: OSError, said: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: Path) -> bytes:
        raise raised

    monkeypatch.setattr(Path, "read_bytes", denied)
    found = flaw(bearing(pair), "ssl.key.location failed: error:0A080002")
    assert found is not None
    assert said in found.what


@pytest.mark.parametrize(
    "words", ["no such property", "ssl.key.location failed", "ssl.ca.location failed"]
)
def test_where_no_file_is_to_blame_librdkafkas_words_stand(
    words: str, pair: Pair, tmp_path: Path
) -> None:
    assert flaw(bearing(pair) | {CA: str(tmp_path)}, words) is None
    assert flaw({}, words) is None
