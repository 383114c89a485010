"""Threads beside a test: they end with its block, and their failure is its failure."""

import pytest

from tests.support.threads import Threads, Writers


def test_works_end_with_the_block() -> None:
    done: list[str] = []

    def work() -> None:
        assert threads.leaving.wait(60)
        done.append("to its end")

    threads = Threads(work)
    with threads:
        assert not done
    assert done == ["to its end"]


def test_what_a_work_raises_fails_the_block() -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"), Threads(fail):
        pass


def test_the_blocks_own_error_is_not_hidden() -> None:
    with pytest.raises(KeyError), Threads(fail):
        raise KeyError


def test_a_wait_for_writers_ends_when_one_fails() -> None:
    with (
        pytest.raises(AssertionError, match="ZeroDivisionError"),
        Writers(fail) as writers,
    ):
        writers.wait_for_more(1)


def fail() -> None:
    raise ZeroDivisionError
