"""What one stream hands on to the next."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.unit.service.http.conftest import config
from walstream.config.run_options import Options
from walstream.errors import Transient
from walstream.pipeline.shutdown import Stop, Waker
from walstream.sources.context import SourceContext
from walstream.sources.postgres import runner
from walstream.sources.postgres.backfill_messages import PREFIX
from walstream.sources.postgres.table_choice import TableChoice
from walstream.state.store import LmdbStore


class Streams:
    """Stands for sessions, of which the second opens its stream."""

    given: list[Options]

    def __init__(self, context: SourceContext, **_: Any) -> None:
        self.given.append(context.options)
        self.pipeline = object() if len(self.given) > 1 else None

    def run(self) -> bool:
        raise Transient("the server is away")


def test_consents_are_used_by_a_stream_that_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Streams.given = []
    monkeypatch.setattr(runner, "SourceSession", Streams)
    with LmdbStore(tmp_path / "app") as positions:
        options = Options(accept_timeline=True, adopt_slot=True, driver="x")
        stop = Stop(Waker(), 1.0)
        context = SourceContext(config(), "app", positions, options, stop)
        source = runner.PostgresRunner(context)
        for _ in range(3):
            with pytest.raises(Transient):
                source.run()
    assert Streams.given == [options, options, Options(driver="x")]


class Hearing:
    """Stands for sessions that hear a request, and lose the server."""

    heard: list[Any]

    def __init__(self, _: SourceContext, hear: Any, **__: Any) -> None:
        self.heard.append(hear)
        self.pipeline = None

    def run(self) -> bool:
        self.heard[-1](PREFIX, b'{"tables": ["public.t"]}')
        raise Transient("the server is away")


def test_a_request_by_message_outlives_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream may have confirmed its place."""
    Hearing.heard, back, found = [], threading.Event(), []

    def find(_: object, names: Sequence[str], **__: Any) -> TableChoice:
        if not back.is_set():
            raise Transient("the server is away")
        found.append(names)
        return TableChoice(list(names))

    monkeypatch.setattr(runner, "SourceSession", Hearing)
    monkeypatch.setattr(runner.PostgresRunner, "find", find)
    made = config()
    made.postgres_source("app").backfill_by_message.append("public.t")
    with LmdbStore(tmp_path / "app") as positions:
        stop = Stop(Waker(), 1.0)
        context = SourceContext(made, "app", positions, Options(), stop)
        source = runner.PostgresRunner(context)
        for _ in range(2):
            with pytest.raises(Transient):
                source.run()
        back.set()
        wait_until(lambda: len(found) == 2, 10, "both are looked at")
        source.say_drained(drained=True)
    assert source.counts().backfill_messages == {"accepted": 2, "refused": 0}


def test_a_table_that_is_to_be_replaced_again_begins_once_more(tmp_path: Path) -> None:
    """What was read of it may be what an operator altered since."""
    with LmdbStore(tmp_path / "app") as positions:
        stop = Stop(Waker(), 1.0)
        context = SourceContext(config(), "app", positions, Options(), stop)
        source = runner.PostgresRunner(context)

        def ask(*, replace: bool) -> int:
            assert not source.backfill(["public.t"], replace=replace, where="")
            return source._progress.wishes()["public.t"].serial  # noqa: SLF001 - stored

        first = ask(replace=False)
        assert ask(replace=False) == first
        second = ask(replace=True)
        assert second > first
        assert ask(replace=True) > second
