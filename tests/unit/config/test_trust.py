"""Whose configuration and whose state folder are believed where nobody named them."""

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from walstream.config import load
from walstream.config.trust import (
    refuse_strangers_file,
    refuse_strangers_folder,
    user_name,
)
from walstream.errors import ConfigError

NOBODY, OTHER = 65534, 54321

Give = Callable[..., None]


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Make paths somebody else's: root gives them away, others become another."""

    def give_away(*paths: Path, to: int = NOBODY) -> None:
        if os.geteuid() != 0:
            monkeypatch.setattr(os, "geteuid", lambda: to + 1)
            return
        for path in paths:
            os.chown(path, to, to, follow_symlinks=False)

    return give_away


@pytest.fixture
def here(tmp_path: Path, valid: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the walstream.toml of the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "walstream.toml"
    file.write_text(valid, "utf-8")
    file.chmod(0o600)
    return file


def refusal(path: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    return str(caught.value)


def test_ones_own_is_found(here: Path) -> None:
    assert load(None, {}).sources
    here.chmod(0o644)
    assert load(None, {}).sources


def test_somebody_elses_is_read_only_where_it_is_named(here: Path, give: Give) -> None:
    give(here)
    said = refusal()
    assert str(here) in said
    assert "belongs to " in said
    if os.geteuid() == 0:
        assert user_name(NOBODY) in said
    assert "-c ./walstream.toml" in said
    assert load(here, {}).sources
    assert load(Path("walstream.toml"), {}).sources


def test_a_strangers_link_to_ones_own_is_a_strangers_word(
    here: Path, give: Give
) -> None:
    real = here.rename(here.with_name("mine.toml"))
    here.symlink_to(real)
    assert load(None, {}).sources
    give(here)
    assert "belongs to" in refusal()


@pytest.mark.parametrize("mode", [0o602, 0o666, 0o622])
def test_what_others_may_write_is_read_only_where_it_is_named(
    here: Path, mode: int
) -> None:
    if os.geteuid() == 0:
        os.chown(here, 0, OTHER)
    here.chmod(mode)
    said = refusal()
    assert f"(mode {mode:04o})" in said
    assert "chmod go-w ./walstream.toml" in said
    assert "-c ./walstream.toml" in said
    assert load(here, {}).sources


def test_the_group_that_is_its_owners_alone_is_nobody_else(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # umask 002 and a group for each user, as Fedora and Ubuntu have it
    found = here.stat()
    user = pwd.getpwuid(found.st_uid)
    if os.geteuid() == 0:
        os.chown(here, 0, OTHER)
    here.chmod(0o664)

    def group(*members: str, name: str = user.pw_name) -> None:
        made = grp.struct_group((name, "x", here.stat().st_gid, list(members)))
        monkeypatch.setattr(grp, "getgrgid", lambda _number: made)

    group()
    refuse_strangers_file(here)
    group(user.pw_name)
    refuse_strangers_file(here)
    group("other")
    with pytest.raises(ConfigError, match="by others"):
        refuse_strangers_file(here)
    group(name="users")
    with pytest.raises(ConfigError, match="by others"):
        refuse_strangers_file(here)


def test_a_state_of_ones_own_or_none_yet_is_believed(tmp_path: Path) -> None:
    refuse_strangers_folder(tmp_path, None)
    refuse_strangers_folder(tmp_path / "missing", None)
    (tmp_path / "file").touch()
    refuse_strangers_folder(tmp_path / "file" / "state", None)


def test_a_state_in_the_strangers_reach_is_refused(tmp_path: Path, give: Give) -> None:
    # the folder of all tests lies where everybody may make another, as /tmp
    tmp_path.chmod(0o777)
    state = tmp_path / "state"
    state.mkdir()
    give(state)
    with pytest.raises(ConfigError, match=r"state.* belongs to") as caught:
        refuse_strangers_folder(state, None)
    assert "others" in str(caught.value)
    assert "sudo -u" in str(caught.value)


def test_a_state_is_believed_of_a_file_of_its_owner_that_was_named(
    tmp_path: Path, give: Give
) -> None:
    tmp_path.chmod(0o777)
    state, file = tmp_path / "state", tmp_path / "walstream.toml"
    state.mkdir()
    file.touch()
    give(state, file)
    refuse_strangers_folder(state, file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_state_that_root_alone_can_have_put_there_is_believed() -> None:
    folder = Path("/var/lib") / f"walstream-test-{os.getpid()}"
    state = folder / "state"
    state.mkdir(parents=True)
    try:
        os.chown(state, NOBODY, NOBODY)
        refuse_strangers_folder(state, None)
        os.chown(folder, NOBODY, NOBODY)
        refuse_strangers_folder(state, None)
        os.chown(folder, OTHER, OTHER)
        with pytest.raises(ConfigError, match=f"belongs to user {OTHER}"):
            refuse_strangers_folder(state, None)
        os.chown(folder, NOBODY, NOBODY)
        # a link of another one to a folder that is in nobody's reach
        link = folder / "link"
        link.symlink_to(state)
        os.chown(link, OTHER, OTHER, follow_symlinks=False)
        with pytest.raises(ConfigError, match="link belongs to"):
            refuse_strangers_folder(link, None)
    finally:
        (folder / "link").unlink(missing_ok=True)
        state.rmdir()
        folder.rmdir()


def test_a_user_without_a_name_is_a_number() -> None:
    assert user_name(OTHER) == f"user {OTHER}"
    assert user_name(0) == "root (0)"
