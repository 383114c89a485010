"""A server's folder: when it goes, and who sweeps it."""

import os
import tempfile
from pathlib import Path

import pytest

from walstream.testing.servers.folder import WorkFolder


@pytest.fixture(autouse=True)
def _private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_temporary_folder_is_deleted_with_all_that_is_in_it() -> None:
    folder = WorkFolder("test", None, None)
    (folder.path / "data").mkdir()
    folder.delete()
    assert not folder.path.exists()
    folder.delete()


def test_given_folder_stays(tmp_path: Path) -> None:
    folder = WorkFolder("test", tmp_path / "given", None)
    folder.delete()
    assert folder.path.is_dir()


def test_folder_of_a_dead_owner_is_swept_by_the_next() -> None:
    left = _left_behind()
    _age(left)
    WorkFolder("test", None, None).delete()
    assert not left.exists()


def test_folder_of_a_living_owner_is_let_be() -> None:
    owned = WorkFolder("test", None, None)
    _age(owned.path)
    WorkFolder("test", None, None).delete()
    assert owned.path.exists()
    owned.delete()


def test_young_folder_is_let_be_since_its_lock_may_be_about_to_come() -> None:
    left = _left_behind()
    WorkFolder("test", None, None).delete()
    assert left.exists()


def test_lock_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    left = _left_behind()
    (left / "owner.lock").unlink()
    (left / "owner.lock").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    _age(left)
    WorkFolder("test", None, None).delete()
    assert left.exists()


def _left_behind() -> Path:
    left = Path(tempfile.mkdtemp(prefix="walstream-local-test-"))
    (left / "owner.lock").touch()
    return left


def _age(folder: Path) -> None:
    os.utime(folder, (0, 0))
