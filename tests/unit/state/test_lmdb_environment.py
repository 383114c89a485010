"""Bytes on LMDB: all or none, and no reader that was killed keeps room for ever."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path

import lmdb
import pytest

from walstream.errors import StateDamaged, Transient, WalstreamError
from walstream.state import folder_errors
from walstream.state.lmdb_environment import LmdbEnvironment, discard


@contextmanager
def opened(folder: Path) -> Iterator[LmdbEnvironment]:
    with closing(LmdbEnvironment(folder)) as environment:
        environment.open(wait_s=0.0)
        yield environment


def test_entries_are_written_together_and_none_deletes(tmp_path: Path) -> None:
    with opened(tmp_path) as environment:
        environment.write({"a": b"1", "a/x": b"2", "b": b"3"})
        environment.write({"b": None, "never": None})
        assert environment.names("") == ["a", "a/x"]
        assert environment.names("a/") == ["a/x"]
        assert environment.tree("a") == {"a": b"1", "a/x": b"2"}
        assert (environment.get("a"), environment.get("b")) == (b"1", None)


def test_what_is_too_large_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.state.lmdb_environment._MAP_SIZE", 1 << 20)
    with opened(tmp_path) as environment:
        environment.write({"a": b"1"})
        with pytest.raises(Transient, match="larger than the file may be"):
            environment.write({"a": b"2", "huge": bytes(2 << 20)})
        assert environment.get("a") == b"1"


def test_it_cannot_be_used_when_it_is_closed(tmp_path: Path) -> None:
    with opened(tmp_path) as environment:
        environment.write({"a": b"1"})
    with pytest.raises(WalstreamError, match="not open"):
        environment.get("a")


def test_it_is_read_beside_who_has_it_open_and_not_written(tmp_path: Path) -> None:
    with opened(tmp_path) as environment, closing(LmdbEnvironment(tmp_path)) as other:
        environment.write({"a": b"1"})
        with pytest.raises(WalstreamError, match="in use"):
            other.open(wait_s=0.0)
    with closing(LmdbEnvironment(tmp_path)) as reader:
        reader.open_to_read()
        assert reader.get("a") == b"1"
        with pytest.raises(WalstreamError):
            reader.write({"a": b"2"})


def test_where_nothing_is_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LmdbEnvironment(tmp_path / "none").open_to_read()
    with opened(tmp_path) as environment:
        environment.write({"a": b"1"})
    discard(tmp_path)
    with pytest.raises(FileNotFoundError):
        LmdbEnvironment(tmp_path).open_to_read()


def test_what_cannot_be_deleted_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with opened(tmp_path) as environment:
        environment.write({"a": b"1"})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(Transient, match="Input/output error"):
            discard(tmp_path)
    discard(tmp_path)
    assert not (tmp_path / "data.mdb").exists()


def test_a_file_of_other_bytes_is_damage(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"\xff" * 20_000)
    with pytest.raises(StateDamaged, match="is damaged"), opened(tmp_path):
        pass


def test_what_the_system_refuses_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise lmdb.Error(f"{tmp_path}: Input/output error")

    monkeypatch.setattr(lmdb, "open", refuse)
    with pytest.raises(Transient, match="Input/output error"), opened(tmp_path):
        pass
    (tmp_path / "data.mdb").write_bytes(b"")
    with pytest.raises(Transient, match="Input/output error"), opened(tmp_path):
        pass


def unwritable_head(folder: Path) -> None:
    """Let LMDB write its pages, and not its head: that has a descriptor of its own."""
    file = folder / "data.mdb"
    heads = [
        int(link.name)
        for link in Path("/proc/self/fd").iterdir()
        if link.exists()
        and link.samefile(file)
        and fcntl.fcntl(int(link.name), fcntl.F_GETFL) & os.O_DSYNC
    ]
    (head,) = heads
    with file.open("rb") as unwritable:
        os.dup2(unwritable.fileno(), head)


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_head_that_was_not_written_costs_one_write(
    tmp_path: Path, writes: int
) -> None:
    with opened(tmp_path) as environment:
        for number in range(writes):
            environment.write({"a": b"%d" % number})
        unwritable_head(tmp_path)
        with pytest.raises(Transient, match="cannot write"):
            environment.write({"a": b"lost"})
        found = environment.get("a")
        assert found == (b"%d" % (writes - 1) if writes else None)
        environment.write({"a": b"again"})
        assert environment.get("a") == b"again"
    with opened(tmp_path) as environment:
        assert environment.names("") == ["a"]


def test_a_head_that_stays_unwritable_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise lmdb.Error(f"{tmp_path}: Input/output error")

    with opened(tmp_path) as environment:
        environment.write({"a": b"1"})
        unwritable_head(tmp_path)
        with pytest.raises(Transient):
            environment.write({"a": b"lost"})
        with monkeypatch.context() as patched:
            patched.setattr(lmdb, "open", refuse)
            for _ in range(2):
                with pytest.raises(Transient, match="Input/output error"):
                    environment.get("a")
                with pytest.raises(Transient, match="Input/output error"):
                    environment.write({"a": b"2"})
        assert environment.get("a") == b"1"


def test_a_reader_is_not_cut_off_when_it_is_opened_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as environment, ThreadPoolExecutor() as pool:
        environment.write({"a": b"1"})
        with environment._reading() as transaction:  # noqa: SLF001 - amid it
            unwritable_head(tmp_path)
            with pytest.raises(Transient):
                environment.write({"a": b"lost"})
            writing = pool.submit(environment.write, {"a": b"2"})
            assert wait([writing], timeout=0.1).not_done
            assert transaction.get(b"a") == b"1"
        writing.result(30)
        assert environment.get("a") == b"2"


READER = """
import lmdb, sys
environment = lmdb.open(sys.argv[1], readonly=True, create=False)
transaction = environment.begin()
transaction.get(b"position")
print("reading", flush=True)
sys.stdin.read()
"""


def kill_reader(folder: Path) -> None:
    """Kill a process in the middle of reading."""
    command = [sys.executable, "-c", READER, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        reader.kill()
    assert reader.returncode == -signal.SIGKILL


def store_some(environment: LmdbEnvironment, times: int = 200) -> None:
    for number in range(times):
        environment.write({"figures": str(number).encode()})


def test_pages_are_used_again_when_a_reader_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as environment:
        store_some(environment)
        before = environment.last_page
        kill_reader(tmp_path)
        store_some(environment)  # within the minute
        grown = environment.last_page
        assert grown > before + 200  # the reader does hold its pages
        monkeypatch.setattr("walstream.state.lmdb_environment._READERS_EVERY_S", 0.0)
        vars(environment)["_readers_at"] = 0.0  # a minute has passed
        store_some(environment)
        assert environment.last_page == grown


def test_a_file_that_a_killed_reader_let_grow_full_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.state.lmdb_environment._MAP_SIZE", 1 << 20)
    with opened(tmp_path) as environment:
        store_some(environment)
        kill_reader(tmp_path)
        store_some(environment, 600)  # more pages than the file may have
        assert environment.get("figures") == b"599"


def test_each_commit_has_its_fsync_and_a_full_disk_is_an_exception(
    tmp_path: Path,
) -> None:
    """Without, a crash tears the file; with writemap a full disk is a SIGBUS."""
    with opened(tmp_path) as environment:
        flags = environment._opened().flags()  # noqa: SLF001 - what LMDB was asked for
    assert (flags["sync"], flags["metasync"], flags["lock"]) == (True, True, True)
    assert (flags["writemap"], flags["map_async"]) == (False, False)


def test_a_full_disk_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = LmdbEnvironment(tmp_path)
    error = OSError("LMDB says so")
    assert isinstance(environment.damaged(error), StateDamaged)
    monkeypatch.setattr(folder_errors, "is_full", lambda *_: True)
    assert isinstance(environment.damaged(error), Transient)
    assert isinstance(environment.damaged("a checksum is wrong"), StateDamaged)


@pytest.mark.parametrize("ask", ["names", "tree"])
def test_a_name_that_no_walstream_wrote_is_damage(tmp_path: Path, ask: str) -> None:
    with opened(tmp_path) as environment:
        environment.write({"keys/abc": b"1"})
    file = tmp_path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"keys/abc", b"keys/\xf3bc"))
    with opened(tmp_path) as environment, pytest.raises(StateDamaged):
        getattr(environment, ask)("keys")
