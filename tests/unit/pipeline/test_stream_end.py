"""When a stream ends that is to go up to an LSN."""

import pytest
from structlog.testing import capture_logs

from walstream.pipeline.stream_end import StreamEnd


def end(*pending: str, lsn: int = 100) -> StreamEnd:
    made = StreamEnd(lambda most: list(pending)[:most])
    made.lsn = lsn
    return made


def test_it_ends_at_its_lsn_for_good() -> None:
    one = end()
    assert not one.look(99)
    assert one.look(100)
    assert one.reached
    assert one.look(50)


def test_rows_that_come_later_do_not_undo_the_end() -> None:
    tables: list[str] = []
    one = StreamEnd(lambda most: tables[:most])
    one.lsn = 100
    assert one.look(100)
    tables.append("public.t")
    assert one.look(101)
    one.look_again(101)
    assert one.reached


@pytest.mark.parametrize(("count", "others"), [(5, False), (6, True)])
def test_a_few_of_the_tables_that_hold_it_up_are_named(
    count: int, *, others: bool
) -> None:
    one = end(*(f"t{number}" for number in range(count)))
    with capture_logs() as said:
        one.look(100)
    named = "t0, t1, t2, t3, t4" + (" and others" if others else "")
    assert [entry["tables"] for entry in said] == [named]


def test_rows_that_are_still_to_be_sent_hold_it_up_which_is_said_once() -> None:
    tables = [f"public.t{number}" for number in range(7)]
    one = StreamEnd(lambda most: tables[:most])
    one.lsn = 0xA
    one.look_again(20)  # nothing was met that they could hold up
    with capture_logs() as said:
        assert not one.look(0xA)
        assert not one.look(20)
    assert [(entry["until"], entry["tables"]) for entry in said] == [
        (
            "0/A",
            "public.t0, public.t1, public.t2, public.t3, public.t4 and others",
        )
    ]
    tables.clear()
    one.look_again(20)
    assert one.reached


def test_without_an_lsn_nothing_is_asked() -> None:
    def asked(_most: int) -> list[str]:
        raise AssertionError

    one = StreamEnd(asked)
    assert not one.look(1 << 60)
    one.look_again(1 << 60)
    assert not one.reached
