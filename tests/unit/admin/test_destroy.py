"""What a destroy leaves of a state when it is interrupted, and how a repeat goes on."""

import shutil
from pathlib import Path

import pytest

from walstream.admin.destroy import destroy
from walstream.admin.teardown import Teardown
from walstream.config import Config, load
from walstream.errors import ConfigError, StateDamaged, Transient
from walstream.state.store import FORMAT, LmdbStore, StateFormat

POLLED = """
[sources.app]
kind = "sql"
url = "sqlite:////tmp/none.db"
sinks = ["log"]
[sources.app.tables.t]
primary_key = "id"
"""
STREAMED = """
[sources.app]
kind = "postgres"
dsn = "host=127.0.0.1 port=1"
sinks = ["log"]
"""  # where no server answers


def loaded(folder: Path, source: str) -> Config:
    file = folder / "walstream.toml"
    sink = '[sinks.log]\nkind = "log"\n' + 'format = "row"\n' * (source == POLLED)
    file.write_text(f'state = "{folder / "state"}"\n{source}{sink}')
    return load(file, {})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a source's folder, with the state of a sink that is away in it."""
    folder = tmp_path / "state" / "app"
    (folder / "away" / "log").mkdir(parents=True)
    for name in ("data.mdb", "away/log/data.mdb"):
        (folder / name).touch()
    return folder


def agree(_shown: Teardown) -> bool:
    return True


def test_the_state_is_never_there_by_half(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, aside = loaded(tmp_path, POLLED), state.with_name("app.destroyed")
    left = []

    def crash(folder: Path) -> None:
        left.append((folder, state.exists()))
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", crash)
        with pytest.raises(ConfigError, match="cannot be deleted") as refused:
            destroy(config, "app", agree)
    assert left == [(aside, False)]
    assert refused.value.hint.endswith(f"rm -r {aside}")

    done = destroy(config, "app", agree)
    assert done is not None
    assert done.interrupted
    assert not aside.exists()
    again = destroy(config, "app", agree)
    assert again is not None
    assert again.empty


def test_a_link_to_a_state_that_was_cut_short_goes_with_the_next_call(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, aside = loaded(tmp_path, POLLED), state.with_name("app.destroyed")
    state.rename(target := tmp_path / "volume")
    state.symlink_to(target)

    def crash(_folder: Path) -> None:
        raise OSError(16, "Device or resource busy")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", crash)
        with pytest.raises(ConfigError, match="cannot be deleted") as refused:
            destroy(config, "app", agree)
    assert refused.value.hint.endswith(f"rm -r {aside} {target}")
    shutil.rmtree(target)  # the link leads nowhere
    done = destroy(config, "app", agree)
    assert done is not None
    assert done.interrupted
    assert not aside.is_symlink()


def test_after_an_interrupted_deletion_no_server_is_asked(
    state: Path, tmp_path: Path
) -> None:
    state.rename(aside := state.with_name("app.destroyed"))
    done = destroy(loaded(tmp_path, STREAMED), "app", agree)
    assert done == Teardown("app", remains=aside)
    assert not aside.exists()


def test_what_remains_goes_with_the_state_of_a_later_start(
    state: Path, tmp_path: Path
) -> None:
    shutil.copytree(state, aside := state.with_name("app.destroyed"))
    done = destroy(loaded(tmp_path, POLLED), "app", agree)
    assert done == Teardown("app", folder=state, remains=aside)
    assert not state.exists()
    assert not aside.exists()


def test_a_state_that_changed_after_it_was_shown_stays(
    state: Path, tmp_path: Path
) -> None:
    def agree_too_late(_shown: Teardown) -> bool:
        state.with_name("app.destroyed").mkdir()
        return True

    with pytest.raises(Transient, match=r"changed after it was shown \(state\)") as it:
        destroy(loaded(tmp_path, POLLED), "app", agree_too_late)
    assert "walstream destroy app" in it.value.hint
    assert state.is_dir()


def test_a_damaged_state_is_refused_with_what_is_to_be_done(
    state: Path, tmp_path: Path
) -> None:
    (state / "data.mdb").write_bytes(b"\xff" * 20_000)
    with pytest.raises(StateDamaged, match="nothing was dropped") as refused:
        destroy(loaded(tmp_path, STREAMED), "app", agree)
    assert "walstream positions reset app --adopt-slot" in refused.value.hint
    assert "walstream destroy app" in refused.value.hint
    assert (state / "data.mdb").exists()


def test_a_state_of_a_newer_walstream_is_no_damage(state: Path, tmp_path: Path) -> None:
    with LmdbStore(state) as positions:
        positions.write(FORMAT.entry(StateFormat(99)))
    with pytest.raises(StateDamaged, match="format 99") as refused:
        destroy(loaded(tmp_path, STREAMED), "app", agree)
    assert refused.value.hint == "run the walstream that wrote it, or a newer one"
