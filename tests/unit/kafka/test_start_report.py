"""One line at a start: the worst of all partitions, and up to where."""

from walstream.kafka.delivery_verdict import Agreement, StreamPlace, TailVerdict
from walstream.kafka.offsets import Partition
from walstream.kafka.start_report import of, of_position

PLACE = StreamPlace(resume=0x100, flush=0x900)
AGREES = TailVerdict(Agreement.AGREE, "", 0x50, 0)
LEFT_OUT = TailVerdict(Agreement.AGREE, "", 0x200, 0, left_out=True)
REPEATED = TailVerdict(Agreement.REPEATED, "other rules", 0x300, 0)
FOREIGN = TailVerdict(Agreement.FOREIGN, "of another", 0x400, 0)


def at(*verdicts: TailVerdict) -> dict[Partition, TailVerdict]:
    return {Partition("t", number): one for number, one in enumerate(verdicts)}


def test_nothing_beyond_the_position_is_nothing_to_say() -> None:
    assert of({}, [], PLACE) is None
    assert of(at(AGREES, TailVerdict(Agreement.AGREE)), [], PLACE) is None


def test_what_is_left_out_is_told_up_to_its_end() -> None:
    said = of(at(AGREES, LEFT_OUT), [], PLACE)
    assert said is not None
    assert said.text == "what Kafka has already is left out"
    assert said.fields == {"partitions": 1, "up_to": "0/200"}
    assert not said.is_bad


def test_what_comes_again_is_told_from_the_position_on() -> None:
    said = of(at(LEFT_OUT, REPEATED, REPEATED), [], PLACE)
    assert said is not None
    assert "may come again" in said.text
    assert said.fields == {"begins": "0/100", "up_to": "0/300", "topics": 1}
    assert not said.is_bad


def test_a_topic_with_new_rules_may_have_all_of_the_servers_wal() -> None:
    said = of(at(REPEATED), ["u", "t"], PLACE)
    assert said is not None
    assert said.fields == {"begins": "0/100", "up_to": "0/900", "topics": 2}
    # where the server has nothing beyond the position, neither has Kafka
    assert of({}, ["u"], StreamPlace(resume=0x900, flush=0x900)) is None


def test_a_disagreement_is_a_warning_that_names_the_first() -> None:
    missing = TailVerdict(Agreement.MISSING, "it was cut off")
    said = of(at(REPEATED, FOREIGN, missing), [], PLACE)
    assert said is not None
    assert said.is_bad
    assert said.text == "Kafka and the position disagree: of another"
    assert said.fields == {
        "topic": "t",
        "partition": 1,
        "lsn": "0/400",
        "partitions": 2,
    }
    said = of(at(missing), [], PLACE)
    assert said is not None
    assert said.fields == {"topic": "t", "partition": 0}


def test_a_position_in_kafka_is_told() -> None:
    left_out = of_position("", 0x60, 0x50)
    assert left_out.text == "what Kafka has already is left out"
    assert left_out.fields == {"begins": "0/50", "up_to": "0/60"}
    nothing = of_position("", 0, 0x50)
    assert nothing.text == "Kafka has nothing beyond the position"
    strange = of_position("it is of another history", 0, 0x50)
    assert strange.is_bad
    assert strange.fields == {"reason": "it is of another history"}
