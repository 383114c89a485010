"""A source all of whose sinks are detached names what would cure it."""

from pathlib import Path

import pytest

from walstream.errors import ConfigError
from walstream.pipeline.ports import Position
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    DetachedSink,
)
from walstream.sources.postgres.detached.membership import SinkMembership
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.store import LmdbStore


def test_where_the_other_sinks_were_taken_out_one_of_them_cures_it(
    tmp_path: Path,
) -> None:
    home = Home("app", "", "s", tmp_path / "app")
    note = DetachedSink(AWAY, "s_b", 0.0, "it is away", 500)
    with LmdbStore(home.folder) as positions:
        entry = DETACHED.of("b").entry(note)
        positions.store(Position(600, 7, 1, "shop", "s"), entry)
        members = SinkMembership(home, positions, lambda: None)
        with pytest.raises(ConfigError, match="no sink of source 'app'") as found:
            members.settle(["b"])
        members.close()
    assert "put a sink back that was taken out" in found.value.hint
