"""As whom a server runs, and what that user may use."""

import os
from pathlib import Path
from tempfile import gettempdir

import pytest

from walstream.testing.servers.account import Account, server_account

STRANGER = Account("stranger", 64999, 64999)


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """Let strangers into tmp_path, which pytest keeps for its user."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(gettempdir()):
            break
        folder.chmod(0o755)
    return tmp_path


def test_server_runs_as_another_for_root_alone() -> None:
    account = server_account()
    assert (account is not None) == (os.geteuid() == 0)
    assert account is None or account.uid != 0


def test_stranger_may_use_what_is_open_all_the_way(open_path: Path) -> None:
    assert STRANGER.may_use(open_path)


def test_stranger_may_not_use_what_a_closed_folder_holds(open_path: Path) -> None:
    inner = open_path / "closed" / "open"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    assert not STRANGER.may_use(inner)


def test_link_is_judged_by_where_it_leads(open_path: Path) -> None:
    closed = open_path / "closed"
    closed.mkdir(mode=0o700)
    link = open_path / "link"
    link.symlink_to(closed)
    assert not STRANGER.may_use(link)


def test_owner_is_judged_by_the_owners_bits(open_path: Path) -> None:
    mine = open_path / "mine"
    mine.mkdir(mode=0o700)
    status = mine.stat()
    assert Account("me", status.st_uid, status.st_gid).may_use(mine)
