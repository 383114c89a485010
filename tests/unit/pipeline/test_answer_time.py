"""Of how soon Kafka answers, the least of the last seconds counts."""

from walstream.pipeline.answer_time import AnswerTime


def test_nothing_is_known_before_a_delivery() -> None:
    assert AnswerTime().least_s(100.0) == 0.0


def test_the_least_counts_and_not_what_waited_for_others() -> None:
    answers = AnswerTime()
    for took_s in (0.5, 0.02, 3.0):
        answers.observe(took_s)
    assert answers.least_s(100.0) == 0.02
    answers.observe(0.3)
    assert answers.least_s(100.5) == 0.02


def test_what_is_long_ago_does_not_count() -> None:
    answers = AnswerTime()
    answers.observe(0.001)
    assert answers.least_s(100.0) == 0.001
    answers.observe(0.02)
    assert answers.least_s(101.0) == 0.02, "a window later"
    assert answers.least_s(102.0) == 0.0, "and two later, without a delivery"
