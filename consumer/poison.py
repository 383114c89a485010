"""Policy for a record that is not an op."""

from collections.abc import Callable
from typing import Literal

from consumer.errors import HandlerFailed, PoisonRecord
from consumer.op import ConsumerRecord
from walstream.errors import WalstreamError

OnPoison = Literal["stop", "skip"] | Callable[[ConsumerRecord], object]
"""`"stop"`, `"skip"`, or a function that sees the record and lets it pass."""


def checked(policy: OnPoison) -> OnPoison:
    """Refuse a misspelt policy at once."""
    if policy not in ("stop", "skip") and not callable(policy):
        raise ValueError('on_poison must be "stop", "skip" or a function of the record')
    return policy


def meet(policy: OnPoison, record: ConsumerRecord, reason: WalstreamError) -> None:
    """Return when the record is to be passed over; raise what stops the consumer."""
    where = f"{record.topic}[{record.partition}] offset {record.offset}"
    if callable(policy):
        try:
            policy(record)
        except BaseException as error:
            raise HandlerFailed(
                f"on_poison failed at {where}: {type(error).__name__}"
            ).at(record.topic, record.partition, record.offset) from error
    elif policy == "stop":
        raise PoisonRecord(
            f"the record at {where} cannot be read: {reason}",
            hint='check who else writes to this topic; on_poison="skip" skips it',
        ).at(record.topic, record.partition, record.offset)
