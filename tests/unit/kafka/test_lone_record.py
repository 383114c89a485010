"""A lone record is produced once, and waited for."""

from walstream.kafka.lone_record import Alone


def test_one_that_finds_no_room_is_tried_again_and_then_waited_for() -> None:
    answers = [False, True]
    reports: list[tuple[object, ...]] = []
    alone = Alone()
    alone.produce = lambda: answers.pop(0)
    assert [alone.attempt() for _ in range(3)] == [False] * 3
    assert not answers
    alone.report(lambda *delivery: reports.append(delivery), None, "message")
    assert reports == [(None, "message")]
    assert alone.attempt()
