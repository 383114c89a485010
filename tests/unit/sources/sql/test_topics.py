"""A polled table's rows go to a topic in some sink, or the source is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.sqlite_source import SOURCE, configured
from walstream.errors import ConfigError
from walstream.sources.routers import Routers
from walstream.sources.sql.topics import place, topics_of


def routers(folder: Path, **sink: Any) -> Routers:
    return Routers(configured(folder, {"t": {}, "shop.t": {}}, **sink), SOURCE)


def test_a_topic_is_named_after_schema_and_table(tmp_path: Path) -> None:
    found = routers(tmp_path)
    assert topics_of(found, SOURCE, "shop.t") == {"rows": "shop.t"}
    assert topics_of(found, SOURCE, "t") == {"rows": "legacy.t"}


def test_a_table_that_no_sink_takes_is_refused_with_what_takes_it(
    tmp_path: Path,
) -> None:
    found = routers(tmp_path, topic="", topics={"shop.t": {"name": "rows_of_t"}})
    assert topics_of(found, SOURCE, "shop.t") == {"rows": "rows_of_t"}
    with pytest.raises(ConfigError, match=r"sources.legacy.tables.t: no sink") as error:
        topics_of(found, SOURCE, "t")
    assert "fallback_topic" in error.value.hint


def test_a_schema_is_what_stands_before_the_last_dot() -> None:
    assert place("legacy", "shop.orders") == ("shop", "orders")


def test_without_one_the_source_stands_for_it() -> None:
    assert place("legacy", "orders") == ("legacy", "orders")
