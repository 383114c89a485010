"""Only what was given up on purpose is a risk."""

from walstream.config import KafkaSinkConfig
from walstream.config.risk import RISKS, risks


def sink(**given: bool | str) -> KafkaSinkConfig:
    producer = {"bootstrap.servers": "b:1"}
    return KafkaSinkConfig.model_validate(
        {"kind": "kafka", "producer": producer, **given}
    )


def test_a_plain_sink_has_none() -> None:
    assert risks(sink()) == {}


def test_each_key_that_gives_something_up_is_named() -> None:
    assert risks(sink(insecure=True, at_most_once=True)) == RISKS
    assert list(risks(sink(insecure=True))) == ["insecure"]


def test_what_gives_up_the_order_of_a_row_is_named() -> None:
    assert list(risks(sink(key="event"))) == ["key"]
    assert list(risks(sink(partitioner="random"))) == ["partitioner"]
    assert not risks(sink(key="tspkeyus", partitioner="crc32"))
