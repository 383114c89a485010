"""Of how soon Kafka answers, the least of the last seconds counts."""

from walstream.pipeline.answer_time import AnswerTime


def begun() -> AnswerTime:
    """Begin a window at 100 s."""
    answers = AnswerTime()
    assert answers.least_s(100.0) == 0.0
    return answers


def test_the_least_counts_and_not_what_waited_for_others() -> None:
    answers = begun()
    for took_s in (0.3, 0.02, 0.35):
        answers.observe(took_s)
    assert answers.least_s(100.4) == 0.02
    answers.observe(0.3)
    assert answers.least_s(100.5) == 0.02


def test_each_second_it_is_measured_anew() -> None:
    """By one that began since: those before were heard of when the loop had rested."""
    answers = begun()
    answers.observe(0.02)
    assert answers.least_s(100.5) == 0.02
    assert answers.least_s(101.0) == 0.0
    answers.observe(0.024)
    assert answers.least_s(101.01) == 0.0, "it began before"
    answers.observe(0.021)
    assert answers.least_s(101.03) == 0.02
    assert answers.least_s(102.0) == 0.0
    answers.observe(0.021)
    assert answers.least_s(102.03) == 0.021, "the one before is two windows ago"


def test_what_was_never_sent_is_no_answer() -> None:
    answers = begun()
    answers.observe(0.0)
    answers.observe(0.00002)
    assert answers.least_s(100.5) == 0.0
    answers.observe(0.0004)
    assert answers.least_s(100.5) == 0.0004
