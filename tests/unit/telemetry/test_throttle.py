"""What lasts is said at once, and again after a while."""

from walstream.telemetry.throttle import Throttle


class Said:
    def __init__(self) -> None:
        self.now = 5.0
        self.throttle = Throttle(60.0, lambda: self.now)

    def at(self, now: float, text: str) -> bool:
        self.now = now
        return self.throttle.is_due(text)


def test_what_lasts_is_said_again_after_a_while() -> None:
    said = Said()
    assert [said.at(now, "a") for now in (5, 6, 64.9, 65, 66, 125)] == [
        True, False, False, True, False, True,
    ]  # fmt: skip


def test_another_text_is_said_at_once() -> None:
    said = Said()
    assert [said.at(5, "a"), said.at(6, "b"), said.at(7, "a")] == [True] * 3


def test_what_is_over_is_said_anew() -> None:
    said = Said()
    assert not said.throttle.reset()
    assert said.at(5, "a")
    assert said.throttle.reset()
    assert said.at(6, "a")
