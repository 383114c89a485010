"""Ids whose meaning is another by now; those of before the stream are no news."""

import threading
import time
from typing import Any

import pytest

from tests.support.deadline import wait_until
from walstream.errors import WalstreamError
from walstream.kafka.registry import id_patrol
from walstream.kafka.registry.client import RegisteredText
from walstream.kafka.registry.errors import RegistryAway, SchemaUnregistered
from walstream.kafka.registry.id_patrol import IdPatrol


class Walk:
    """A patrol, a registry, and what it told."""

    def __init__(self) -> None:
        self.answers: dict[int, RegisteredText | WalstreamError] = {}
        self.known = [7, 8]
        self.told: list[int] = []
        self.asked: list[int] = []
        self.over = threading.Event()
        client: Any = self
        self.patrol = IdPatrol(client, lambda: self.known, self.over, self.told.append)

    def schema_of(self, number: int, *, anew: bool) -> RegisteredText:
        assert anew
        self.asked.append(number)
        if len(self.asked) > 5:
            self.over.set()
        found = self.answers.get(number, RegisteredText("AVRO", "{}"))
        if isinstance(found, WalstreamError):
            raise found
        return found

    def look(self, found: RegisteredText | WalstreamError) -> list[int]:
        self.answers[7] = found
        self.patrol.look(7)
        return self.told


OURS = RegisteredText("AVRO", "{}")


def test_the_same_is_no_news() -> None:
    walk = Walk()
    assert walk.look(OURS) == walk.look(OURS) == []


@pytest.mark.parametrize(
    "other",
    [
        RegisteredText("AVRO", "[]"),
        RegisteredText("JSON", "{}"),
        SchemaUnregistered("not there"),
    ],
)
def test_another_schema_is_told(other: RegisteredText | WalstreamError) -> None:
    walk = Walk()
    walk.look(OURS)
    assert walk.look(RegistryAway("away")) == []
    assert walk.look(other) == [7]


def test_what_was_never_there_is_known_from_the_start() -> None:
    walk = Walk()
    assert walk.look(SchemaUnregistered("not there")) == []
    assert walk.look(SchemaUnregistered("not there")) == []


def test_each_is_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_patrol, "_EVERY_S", 0.0)
    monkeypatch.setattr(id_patrol, "_ROUND_S", 0.01)
    walk = Walk()
    walk.patrol.run()
    assert walk.asked == [7, 8, 7, 8, 7, 8]


def test_a_new_one_does_not_wait_for_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(id_patrol, "_EVERY_S", 0.01)
    walk = Walk()
    walk.known = []
    walking = threading.Thread(target=walk.patrol.run)
    walking.start()
    time.sleep(0.1)
    walk.known = [7]
    wait_until(lambda: walk.asked == [7], 10, "it is asked for")
    walk.known = [7, 8]
    wait_until(lambda: walk.asked == [7, 8], 10, "the other is, too")
    time.sleep(0.1)
    assert walk.asked == [7, 8]  # no more in this minute
    walk.over.set()
    walking.join(10)
