"""What an error of the target means for an op."""

import psycopg
import pytest
from psycopg import errors

from consumer.handler import Fatal, Retry
from consumer.mirror.errors import MirrorError, RetryPatience, stop, translate, wait
from tests.support.loads.op import make
from walstream.op import Kind

OP = make(Kind.INSERT, "public.t", new={"id": "secret"}, lsn=0x1F, seq_id=3)
NEXT = make(Kind.INSERT, "public.t", new={"id": "2"}, lsn=0x2F)
ELSEWHERE = make(Kind.INSERT, "public.t", new={"id": "2"}, partition=1)


def test_patience_counts_from_each_ops_first_refusal() -> None:
    now = [0.0]
    patience = RetryPatience(10, clock=lambda: now[0])
    assert patience.lasts(OP)
    now[0] = 9
    assert patience.lasts(OP)
    assert patience.lasts(ELSEWHERE)
    now[0] = 11
    assert not patience.lasts(OP)
    assert patience.lasts(ELSEWHERE)
    assert patience.lasts(NEXT)  # the partition went on


def test_waiting_ends_with_the_ops_table_and_position() -> None:
    assert isinstance(wait(RetryPatience(10), OP, "refused"), Retry)
    ended = wait(RetryPatience(0), OP, "refused", "cure it")
    assert isinstance(ended, Fatal)
    assert str(ended.cause) == "public.t at 0/1F, 3: refused, for 0 s\n  cure it"


def test_the_end_names_the_op() -> None:
    cause = stop(OP, "no").cause
    assert isinstance(cause, MirrorError)
    assert str(cause) == "public.t at 0/1F, 3: no"


@pytest.mark.parametrize(
    "kind",
    [
        errors.DeadlockDetected,
        errors.SerializationFailure,
        errors.AdminShutdown,
        errors.LockNotAvailable,
        errors.DiskFull,
        psycopg.OperationalError,
    ],
)
def test_outages_and_deadlocks_are_the_consumers(kind: type[psycopg.Error]) -> None:
    error = kind("secret")
    assert translate(error, RetryPatience(10), OP) is error


@pytest.mark.parametrize(
    "kind",
    [errors.UniqueViolation, errors.ForeignKeyViolation, errors.UndefinedColumn],
)
def test_what_another_partition_may_cure_is_tried_again(
    kind: type[psycopg.Error],
) -> None:
    assert isinstance(translate(kind("secret"), RetryPatience(10), OP), Retry)
    patience = RetryPatience(0)
    again = translate(kind("secret"), patience, OP)
    assert isinstance(again, errors.SerializationFailure)
    ended = translate(kind("secret"), patience, OP)
    assert isinstance(ended, Fatal)
    assert kind.__name__ in str(ended.cause)
    assert "secret" not in str(ended.cause)


@pytest.mark.parametrize(
    "kind",
    [errors.NotNullViolation, errors.InvalidTextRepresentation, errors.SyntaxError],
)
def test_what_nothing_cures_stops_the_second_time(kind: type[psycopg.Error]) -> None:
    """The first time its table may have been altered."""
    patience = RetryPatience(10)
    again = translate(kind("secret"), patience, OP)
    assert isinstance(again, errors.SerializationFailure)
    assert "secret" not in str(again)
    ended = translate(kind("secret"), patience, OP)
    assert isinstance(ended, Fatal)
    assert "secret" not in str(ended.cause)
