"""Why a state folder takes nothing, and who is asked to do something."""

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace

import lmdb
import pytest

from walstream.errors import ConfigError, PermissionLacking, Transient, WalstreamError
from walstream.state.folder_errors import is_full, refusal


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (errno.ENOSPC, Transient, "no space left on device"),
        (errno.EDQUOT, Transient, "no space left on device"),
        (errno.EACCES, PermissionLacking, "Permission denied"),
        (errno.EROFS, PermissionLacking, "Read-only file system"),
        (errno.ENOTDIR, ConfigError, "Not a directory"),
        (errno.EIO, Transient, "Input/output error"),
    ],
)
def test_why_it_takes_nothing_decides_who_is_asked(
    tmp_path: Path, number: int, kind: type[WalstreamError], said: str
) -> None:
    error = refusal(tmp_path, OSError(number, ""))
    assert type(error) is kind
    assert said in str(error.args[0])
    assert error.hint


@pytest.mark.parametrize(("left", "full"), [(4 << 10, True), (1 << 30, False)])
def test_what_lmdb_wrote_in_part_is_a_full_disk_only_where_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, full: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=left))
    error = lmdb.Error("mdb_txn_commit: Input/output error")
    assert is_full(tmp_path / "not" / "yet", error) is full
