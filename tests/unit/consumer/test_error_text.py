"""Errors name the op, and hold no value of its row."""

from consumer.error_text import handler_failed
from consumer.errors import TransactionEnded
from consumer.handler import Fatal
from consumer.op import ConsumerRecord, Op
from tests.support.loads.op_record import insert

_OP = Op(
    insert(0x16B3748, 3, ["secret", "1"]), ConsumerRecord("t", 2, 9, b"k", b"secret")
)


def test_the_message_and_the_attributes_name_the_op() -> None:
    cause = ValueError("secret")
    error = handler_failed(_OP, cause)
    assert (error.topic, error.partition, error.offset) == ("t", 2, 9)
    assert (error.table, error.lsn, error.seq_id) == ("public.item", 0x16B3748, 3)
    for part in ("t[2] offset 9", "public.item", "0/16B3748", "seq_id 3", "ValueError"):
        assert part in str(error)
    assert "secret" not in str(error)
    assert error.__cause__ is cause


def test_fatal_stands_back_behind_its_cause() -> None:
    cause = KeyError("secret")
    error = handler_failed(_OP, Fatal(cause))
    assert error.__cause__ is cause
    assert "KeyError" in str(error)
    assert "no such currency" in str(handler_failed(_OP, Fatal("no such currency")))
    assert "Fatal" in str(handler_failed(_OP, Fatal()))


def test_our_own_error_stays_as_it_is() -> None:
    error = TransactionEnded("x")
    assert handler_failed(_OP, error) is error
