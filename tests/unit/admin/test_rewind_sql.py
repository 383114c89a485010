"""A table goes back to any key below its position; only then, and only if agreed."""

from pathlib import Path

import pytest

from tests.support.loads.poll_progress import keep, kept
from tests.support.programs.sqlite_source import SOURCE, configured, state_of
from walstream.admin.rewind_sql import TableRewind, rewind
from walstream.config import Config
from walstream.errors import ConfigError


def agree(_planned: TableRewind) -> bool:
    return True


def one(folder: Path) -> Config:
    return configured(folder, {"t": {}})


def test_the_only_table_need_not_be_named(tmp_path: Path) -> None:
    config = one(tmp_path)
    keep(state_of(config), "t", key=20, missing=[(4, 6), (15, 15)])
    planned: list[TableRewind] = []

    def consent(what: TableRewind) -> bool:
        planned.append(what)
        return True

    done = rewind(config, SOURCE, "", 10, consent)
    assert planned == [TableRewind(SOURCE, "t", 20, 10)]
    assert (
        done == "table 't' of source 'legacy' is at 10: the next run polls from there"
    )
    found = kept(state_of(config), "t")
    assert found is not None
    assert (found.key, found.gaps.keys) == (10, 3)


def test_where_there_are_several_the_table_is_named(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}, "u": {}})
    keep(state_of(config), "t", key=20)
    keep(state_of(config), "u", key=20)
    with pytest.raises(ConfigError, match="2 tables: name one") as refused:
        rewind(config, SOURCE, "", 10, agree)
    assert refused.value.hint == "add --table, one of: t, u"
    with pytest.raises(ConfigError, match="no table 'v'") as refused:
        rewind(config, SOURCE, "v", 10, agree)
    assert refused.value.hint == "configured are: t, u"
    rewind(config, SOURCE, "u", -5, agree)
    at = [kept(state_of(config), name) for name in ("t", "u")]
    assert [one.key for one in at if one] == [20, -5]


def test_a_key_beyond_the_position_is_refused_with_what_can_be_reached(
    tmp_path: Path,
) -> None:
    config = one(tmp_path)
    keep(state_of(config), "t", key=20)
    with pytest.raises(ConfigError, match="21 lies beyond the position 20") as refused:
        rewind(config, SOURCE, "t", 21, agree)
    assert "any key below 20" in refused.value.hint
    assert "nothing was changed" in rewind(config, SOURCE, "t", 20, agree)


def test_without_a_position_there_is_nothing_to_send_again(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}, "u": {}})
    with pytest.raises(ConfigError, match="'t' of source 'legacy' has no position"):
        rewind(config, SOURCE, "t", 1, agree)
    keep(state_of(config), "t", key=20)
    with pytest.raises(ConfigError, match="'u' of source 'legacy' has no position"):
        rewind(config, SOURCE, "u", 1, agree)


def test_who_does_not_agree_changes_nothing(tmp_path: Path) -> None:
    config = one(tmp_path)
    keep(state_of(config), "t", key=20)
    assert rewind(config, SOURCE, "t", 1, lambda _: False) == "nothing was changed"
    found = kept(state_of(config), "t")
    assert found is not None
    assert found.key == 20


def test_what_changed_while_somebody_was_asked_counts(tmp_path: Path) -> None:
    config = one(tmp_path)
    keep(state_of(config), "t", key=20)

    def consent(_planned: TableRewind) -> bool:
        keep(state_of(config), "t", key=5)  # another one went back, meanwhile
        return True

    with pytest.raises(ConfigError, match="10 lies beyond the position 5"):
        rewind(config, SOURCE, "t", 10, consent)
