"""What one stream hands on to the next."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.service.http.conftest import config
from walstream.config.run_options import Options
from walstream.errors import Transient
from walstream.pipeline.shutdown import Stop, Waker
from walstream.sources.context import SourceContext
from walstream.sources.postgres import runner
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
