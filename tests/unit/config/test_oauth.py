"""[sinks.NAME.oauth] in a configuration."""

from collections.abc import Callable

import pytest

from walstream.config import Config, mask
from walstream.config.oauth import PROPERTY

SERVERS = 'producer = { "bootstrap.servers" = "localhost:9092" }'
SASL = (
    'producer = { "bootstrap.servers" = "localhost:9092",'
    ' "security.protocol" = "SASL_SSL" }'
)
OAUTH = '[sinks.kafka.oauth]\nprovider = "command"\ncommand = ["token"]\n'


def test_it_goes_with_the_properties_and_shows_once(
    load_text: Callable[..., Config], valid: str
) -> None:
    config = load_text(valid.replace(SERVERS, SASL) + OAUTH)
    sink = Config.from_json(config.to_json()).sinks["kafka"]
    assert sink.kind == "kafka"
    assert "token" in sink.producer[PROPERTY]  # type: ignore[union-attr]
    assert sink.producer["sasl.mechanism"] == "OAUTHBEARER"  # type: ignore[union-attr]
    assert PROPERTY not in mask(config)
    assert "[sinks.kafka.oauth]" in mask(config)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('provider = "azure"', 'provider is "azure": write aws_msk_iam, command, or'),
        ('provider = "package:"', "write aws_msk_iam"),
        ('provider = "command"', "has no command"),
        ('provider = "aws_msk_iam"', "has no region"),
    ],
)
def test_half_of_it_is_refused(
    complaint: Callable[..., str], valid: str, written: str, said: str
) -> None:
    text = valid.replace(SERVERS, SASL) + f"[sinks.kafka.oauth]\n{written}\n"
    assert said in complaint(text)


def test_tokens_that_nobody_would_be_shown_are_refused(
    complaint: Callable[..., str], valid: str
) -> None:
    assert "security.protocol" in complaint(valid + OAUTH)
    plain = SASL.replace('"SASL_SSL"', '"SASL_SSL", "sasl.mechanism" = "PLAIN"')
    said = complaint(valid.replace(SERVERS, plain) + OAUTH)
    assert "is not OAUTHBEARER, and oauth is set" in said
