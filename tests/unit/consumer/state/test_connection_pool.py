"""Sessions that are lent."""

from dataclasses import dataclass, field
from typing import cast

import pytest
from psycopg.pq import TransactionStatus

from consumer.handler import Transaction
from consumer.state import connection_pool
from consumer.state.connection_pool import Connections
from tests.support.runtime import altered


@dataclass
class Info:
    transaction_status: TransactionStatus = TransactionStatus.IDLE


@dataclass(eq=False)
class Fake:
    info: Info = field(default_factory=Info)
    closed: bool = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    """Note what is opened."""
    made: list[Fake] = []

    def connect(_dsn: str, _group: str, _isolation: object) -> Transaction:
        made.append(Fake())
        return cast("Transaction", made[-1])

    monkeypatch.setattr(connection_pool, "connect", connect)
    return made


def test_the_last_one_given_back_is_lent_first(made: list[Fake]) -> None:
    lender = Connections("", "g")
    first, second = lender.take(), lender.take()
    lender.give_back(first)
    lender.give_back(second)
    assert lender.take() is second
    assert lender.take() is first
    assert len(made) == 2


def test_one_whose_server_went_away_takes_the_resting_ones_along(
    made: list[Fake],
) -> None:
    lender = Connections("", "g")
    lost, resting = lender.take(), lender.take()
    lender.give_back(resting)
    lost.close()
    lender.give_back(lost)
    assert made[1].closed
    lender.take()
    assert len(made) == 3


def test_one_that_is_left_in_a_transaction_is_lent_no_more(made: list[Fake]) -> None:
    lender = Connections("", "g")
    lender.give_back(lender.take())
    tx = lender.take()
    made[0].info.transaction_status = TransactionStatus.INTRANS
    lender.give_back(tx)
    assert made[0].closed
    assert lender.take() is not tx


def test_those_that_rest_for_long_are_closed(
    made: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    lender = Connections("", "g")
    old, used = lender.take(), lender.take()
    lender.give_back(old)
    lender.give_back(used)
    monkeypatch.setattr(connection_pool, "_IDLE_S", -1)
    lender.give_back(lender.take())
    assert made[0].closed
    assert not made[1].closed


@pytest.mark.parametrize(("seconds", "closed"), [(60.0, False), (60.5, True)])
def test_one_may_rest_for_a_minute(
    made: list[Fake], seconds: float, *, closed: bool
) -> None:
    lender = Connections("", "g")
    old, used = lender.take(), lender.take()
    now = 1000.0
    with altered(monotonic=lambda: now):
        lender.give_back(old)
        now += seconds
        lender.give_back(used)
    assert [one.closed for one in made] == [closed, False]


def test_those_that_come_back_after_the_end_are_closed(made: list[Fake]) -> None:
    lender = Connections("", "g")
    late, resting = lender.take(), lender.take()
    lender.give_back(resting)
    lender.close()
    lender.give_back(late)
    assert [fake.closed for fake in made] == [True, True]
