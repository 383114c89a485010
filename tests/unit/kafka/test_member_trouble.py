"""What ends a membership, and what it only waits for."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from walstream.errors import (
    HistoryError,
    LoginRefused,
    PermissionLacking,
    Restart,
    Transient,
    WalstreamError,
)
from walstream.kafka.member_trouble import MemberTrouble

# librdkafka's local codes are spelt so
AUTHENTICATION = KafkaError._AUTHENTICATION  # noqa: SLF001
DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
LEFT = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001
NO_TOPIC = KafkaError._UNKNOWN_TOPIC  # noqa: SLF001
RESET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
TRANSPORT = KafkaError._TRANSPORT  # noqa: SLF001


def trouble() -> MemberTrouble:
    return MemberTrouble({"bootstrap.servers": "kafka:9092"}, "g")


def test_a_member_outlives_a_token_that_is_late() -> None:
    late = "Failed to acquire SASL OAUTHBEARER token: x"
    refused = "SASL authentication error: invalid_token"
    found = trouble()
    found.hear(KafkaError(AUTHENTICATION, late))
    assert found.failure is None
    found.hear(KafkaError(AUTHENTICATION, refused))
    assert isinstance(found.failure, LoginRefused)


def test_brokers_that_are_away_are_waited_for() -> None:
    found = trouble()
    assert found.away == ""
    found.hear(KafkaError(TRANSPORT, "kafka:9092/1: Connect failed"))
    found.hear(KafkaError(DOWN, "1/1 brokers are down"))
    assert found.failure is None
    assert found.away.startswith("upstream Kafka at kafka:9092 does not answer: ")
    found.end_outage()
    assert found.away == ""


def test_the_first_failure_counts_but_for_one_that_no_other_try_cures() -> None:
    found = trouble()
    first, final = Transient("first"), HistoryError("final")
    for error, kept in (
        (first, first),
        (Transient("second"), first),
        (final, final),
        (HistoryError("another"), final),
        (Transient("third"), final),
    ):
        found.fail(error)
        assert found.failure is kept


def raiser(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (HistoryError("gone"), HistoryError),
        (KafkaException(KafkaError(TRANSPORT)), Transient),
        (
            KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)),
            PermissionLacking,
        ),
    ],
)
def test_what_a_callback_raises_is_kept(
    error: Exception, kind: type[WalstreamError]
) -> None:
    found = trouble()
    found.guard(raiser(error))
    assert type(found.failure) is kind


def test_a_defect_in_a_callback_is_not_kept_for_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        trouble().guard(raiser(ZeroDivisionError()))


def test_a_topic_that_is_missing_is_said_once_and_waited_for() -> None:
    found = trouble()
    with capture_logs() as said:
        for topic in ("up", "up", "other"):
            found.meet(KafkaError(NO_TOPIC), topic, None, None)
    assert [one["topic"] for one in said] == ["up", "other"]
    assert found.failure is None


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (RESET, HistoryError, "topic 'up' partition 2: the group's next offset 7 "),
        (KafkaError.OFFSET_OUT_OF_RANGE, HistoryError, "next offset 7 does not exist"),
        (LEFT, Restart, "left the group"),
        (KafkaError.MSG_SIZE_TOO_LARGE, HistoryError, "'up' partition 2 at offset 7"),
    ],
)
def test_what_stops_a_partition_names_its_place(
    code: int, kind: type[WalstreamError], words: str
) -> None:
    found = trouble()
    found.meet(KafkaError(code), "up", 2, 7)
    assert type(found.failure) is kind
    assert words in str(found.failure)


def test_what_passes_by_itself_and_who_is_away_stop_no_partition() -> None:
    found = trouble()
    found.meet(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION), "up", 2, 7)
    assert found.away == ""
    found.meet(KafkaError(DOWN), "", None, None)
    assert found.away != ""
    assert found.failure is None


def test_a_client_that_gave_up_is_begun_again() -> None:
    found = trouble()
    found.meet(KafkaError(KafkaError.UNKNOWN, "broken", fatal=True), "up", 0, 0)
    assert isinstance(found.failure, Transient)
    assert "the consumer stopped" in str(found.failure)
