"""Policy for a record that is not an op."""

from collections.abc import Callable
from typing import Literal

from consumer.errors import HandlerFailed, PoisonRecord
from consumer.handler import finished, refuse_coroutine, refuse_generator
from consumer.op import ConsumerRecord
from walstream.errors import WalstreamError

OnPoison = Literal["stop", "skip"] | Callable[[ConsumerRecord], object]
"""`"stop"`, `"skip"`, or a function that sees the record and lets it pass."""


def checked(policy: OnPoison, *, coroutines: bool = False) -> OnPoison:
    """Refuse at once a misspelt policy, and a function whose body nobody would run."""
    if policy not in ("stop", "skip") and not callable(policy):
        raise ValueError('on_poison must be "stop", "skip" or a function of the record')
    if callable(policy):
        refuse = refuse_generator if coroutines else refuse_coroutine
        refuse(policy)
    return policy


def _done(returned: object) -> object:
    """Refuse what only promises to see to the record."""
    finished("on_poison", returned)
    return None


def meet(
    policy: OnPoison,
    record: ConsumerRecord,
    reason: WalstreamError,
    result_of: Callable[[object], object] = _done,
) -> None:
    """Return when the record is to be passed over; raise what stops the consumer.

    `result_of` takes what the policy's function returned, and ends when that is done.
    """
    where = f"{record.topic}[{record.partition}] offset {record.offset}"
    if callable(policy):
        try:
            result_of(policy(record))
        except BaseException as error:
            raise HandlerFailed(
                f"on_poison failed at {where}: {type(error).__name__}"
            ).at(record.topic, record.partition, record.offset) from error
    elif policy == "stop":
        raise PoisonRecord(
            f"the record at {where} cannot be read: {reason.args[0]}",
            hint=reason.hint
            or 'check who else writes to this topic; on_poison="skip" skips it',
        ).at(record.topic, record.partition, record.offset)
