"""Only what was given up on purpose is a risk."""

from walstream.config import KafkaSink
from walstream.config.risk import RISKS, risks


def sink(**given: bool) -> KafkaSink:
    producer = {"bootstrap.servers": "b:1"}
    return KafkaSink.model_validate({"kind": "kafka", "producer": producer, **given})


def test_a_plain_sink_has_none() -> None:
    assert risks(sink()) == {}


def test_each_key_that_gives_something_up_is_named() -> None:
    assert risks(sink(insecure=True, at_most_once=True)) == RISKS
    assert list(risks(sink(insecure=True))) == ["insecure"]
