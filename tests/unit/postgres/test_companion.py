"""The watch beside the stream: what is said of one that fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from walstream.errors import Transient
from walstream.postgres import catalog, companion, slot
from walstream.postgres.companion import CompanionTable, SessionCompanion

_FAILED = "slot and publication cannot be looked at"
_AGAIN = "slot and publication are looked at again"


def test_watches_that_fail_again_and_again_are_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """New tables are not captured as long as none succeeds."""
    asked = 0
    answers = False

    @contextmanager
    def session(_dsn: str) -> Iterator[Any]:
        nonlocal asked
        asked += 1
        if not answers:
            raise Transient("the database takes no sessions")
        yield Mock()

    monkeypatch.setattr(companion, "session", session)
    monkeypatch.setattr(slot, "health", lambda *_: None)
    monkeypatch.setattr(catalog, "tables", lambda _: {})
    monkeypatch.setattr(companion, "_WATCH_EVERY_S", 0.0)
    monkeypatch.setattr(companion, "_FIRST_WATCH_S", 0.0)
    keys = Mock(**{"regained.return_value": []})
    table = CompanionTable("", "slot", Mock(), read_toast=True, tell=lambda _: None)
    one = SessionCompanion(table, keys, cast("Any", Mock()), lambda: None)

    def watched(times: int) -> None:
        before = asked

        def looked() -> bool:
            one.tick(paused=False)
            return asked >= before + times

        wait_until(looked, 10, "a watch")

    with capture_logs() as said:
        watched(2)
        assert not said
        watched(4)
        answers = True
        watched(2)
    one.close()
    failed, again = said
    assert failed["event"].startswith(_FAILED)
    assert failed["error"] == "the database takes no sessions"
    assert again["event"] == _AGAIN
