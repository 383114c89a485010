"""LMDB environment of one source's folder: bytes by name, locked by who writes.

LMDB itself keeps the file whole through a crash: no writemap, every commit with fsync.
What it raises becomes an error of ours: damage, no room, no right.
"""

import errno
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import lmdb

from walstream.errors import (
    RESET,
    PermissionLacking,
    StateDamaged,
    Transient,
    WalstreamError,
)
from walstream.state import folder_errors, lmdb_check, lmdb_creation
from walstream.state.lock import FolderLock, holder
from walstream.telemetry import runtime

# address space, not disk: the data are a few kilobytes, unless a million gaps are kept
_MAP_SIZE: Final = 256 << 20
_FILE: Final = "data.mdb"
_READERS_EVERY_S: Final = 60.0
_DAMAGE: Final = (  # what no free space will cure
    lmdb_check.Broken,
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)


class LmdbEnvironment:
    """Entries of one folder, all or none written, with fsync."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FolderLock(folder)
        self._environment: lmdb.Environment | None = None
        # threads may still be at it when the source ends; LMDB does not survive that
        self._guard = threading.RLock()
        self._given_up = False  # by LMDB: it has to be opened again
        self._readers = 0
        self._no_reader = threading.Condition()
        self._readers_at = 0.0  # when the readers' table is looked at again

    def open(self, wait_s: float) -> None:
        """Lock and open; raise StateDamaged when the file cannot be believed."""
        try:
            self._lock.acquire(wait_s)
            lmdb_check.check(self._folder / _FILE)
            lmdb_creation.make(self._folder, _MAP_SIZE)
            lmdb_creation.reserve(self._folder)
            self._environment = self._made()
        except lmdb.ReadonlyError as error:  # of another user's lock.mdb: EACCES
            denied = PermissionError(errno.EACCES, str(error))
            raise folder_errors.refusal(self._folder, denied) from error
        except (lmdb.Error, lmdb_check.Broken, OSError) as error:
            raise self._refusal(error) from error

    def _made(self) -> lmdb.Environment:
        return lmdb.open(
            str(self._folder),
            map_size=_MAP_SIZE,
            subdir=True,
            writemap=False,
            sync=True,
            metasync=True,
            lock=True,
            mode=0o600,
        )

    def _refusal(self, error: Exception) -> WalstreamError:
        """Return why it cannot be opened: damage, or an error of the system."""
        if isinstance(error, _DAMAGE):
            return self.damaged(error)
        return folder_errors.refusal(self._folder, error)

    def open_to_read(self) -> None:
        """Open a folder that a running instance may be using.

        Takes no lock and writes nothing. While a worker writes, the file's tree cannot
        be walked: LMDB's own readers' table keeps what is read whole. Raises
        FileNotFoundError where nothing is.
        """
        file = self._folder / _FILE
        try:
            if not file.stat().st_size:
                raise FileNotFoundError
            self._check_at_rest(file)
            self._environment = lmdb.open(
                str(self._folder),
                map_size=_MAP_SIZE,
                readonly=True,
                create=False,
                lock=self._reserved(),
            )
        except (PermissionError, lmdb.ReadonlyError) as error:
            raise PermissionLacking(
                f"the state folder {self._folder} cannot be read by this user",
                hint="run this as the user that walstream runs as",
            ) from error
        except (lmdb.Error, lmdb_check.Broken) as error:
            raise self._refusal(error) from error

    def _reserved(self) -> bool:
        """Reserve room for a reader's mark; without any, nobody writes either."""
        try:
            lmdb_creation.reserve(self._folder)
        except OSError as error:
            return not folder_errors.is_full(self._folder, error)
        return True

    def _check_at_rest(self, file: Path) -> None:
        try:
            if holder(self._folder) is None:
                lmdb_check.check(file)
        except lmdb_check.Broken:
            # a worker that began meanwhile may have written beneath the walk
            if holder(self._folder) is None:
                raise

    def close(self) -> None:
        with self._guard:
            if self._environment is not None:
                self._environment.close()
                self._environment = None
        self._lock.release()

    def get(self, name: str) -> bytes | None:
        """Return an entry; None: there is none."""
        with self._reading() as transaction:
            stored = transaction.get(name.encode())
        return None if stored is None else bytes(stored)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with `prefix`, in order."""
        with self._reading() as transaction:
            return [name for name, _ in _beginning(transaction, prefix)]

    def tree(self, name: str) -> dict[str, bytes]:
        """Return an entry and all below it (`name/…`), as of one moment."""
        with self._reading() as transaction:
            head = transaction.get(name.encode())
            found = {} if head is None else {name: bytes(head)}
            return found | dict(_beginning(transaction, f"{name}/"))

    @contextmanager
    def _reading(self) -> Iterator[lmdb.Transaction]:
        self._revive()
        with self._no_reader:
            environment = self._opened()
            self._readers += 1
        try:
            with environment.begin() as transaction:
                yield transaction
        except (*_DAMAGE, UnicodeDecodeError) as error:  # a name has no checksum
            raise self.damaged(str(error)) from error
        except lmdb.Error as error:
            raise folder_errors.refusal(self._folder, error) from error
        finally:
            with self._no_reader:
                self._readers -= 1
                self._no_reader.notify_all()

    def _revive(self) -> None:
        """Open it again where LMDB gave it up: its head could not be written.

        The file holds the transaction before that, or that one.
        """
        if self._given_up:  # a reader waits for no write
            with self._guard, self._no_reader:
                self._no_reader.wait_for(lambda: not self._readers)
                self._open_again()

    def _open_again(self) -> None:
        if not self._given_up:  # another thread has
            return
        self._opened().close()
        try:
            lmdb_check.check(self._folder / _FILE)
            self._environment = self._made()
        except (lmdb.Error, lmdb_check.Broken, OSError) as error:
            raise self._refusal(error) from error
        self._given_up = False

    def _has_given_up(self) -> bool:
        try:
            self._opened().begin().abort()
        except lmdb.PanicError:
            return True
        return False

    def write(self, entries: Mapping[str, bytes | None]) -> None:
        """Write all or none, None deletes. Raises Transient when the disk is full."""
        try:
            with self._guard:
                self._revive()
                if runtime.monotonic() >= self._readers_at:
                    self._clear_readers()
                try:
                    self._put(entries)
                except lmdb.MapFullError:
                    self._clear_readers()
                    self._put(entries)
                except lmdb.Error:
                    self._given_up = self._has_given_up()
                    raise
        except _DAMAGE as error:
            raise self.damaged(str(error)) from error
        except lmdb.MapFullError as error:
            raise Transient(
                f"state folder {self._folder}: cannot write: the positions of this"
                f" source are larger than the file may be, {_MAP_SIZE >> 20} MiB",
                hint="lower max_gaps or gap_timeout of its tables: it then remembers "
                "fewer missing keys",
            ) from error
        except (lmdb.Error, OSError) as error:
            if folder_errors.is_full(self._folder, error):
                raise folder_errors.no_room(self._folder) from error
            raise Transient(
                f"state folder {self._folder}: cannot write: {error}",
                hint="free some space there: walstream confirms nothing meanwhile and "
                "continues by itself",
            ) from error

    def _put(self, entries: Mapping[str, bytes | None]) -> None:
        with self._opened().begin(write=True) as transaction:
            for name, stored in entries.items():
                if stored is None:
                    transaction.delete(name.encode())
                else:
                    transaction.put(name.encode(), stored)

    def _clear_readers(self) -> None:
        """Forget readers that were killed: no page that they read is used again."""
        self._readers_at = runtime.monotonic() + _READERS_EVERY_S
        self._opened().reader_check()

    @property
    def last_page(self) -> int:
        """Number of the last page that the file uses."""
        return int(self._opened().info()["last_pgno"])

    def _opened(self) -> lmdb.Environment:
        if self._environment is None:
            raise WalstreamError(f"the state in {self._folder} is not open")
        return self._environment

    def damaged(self, what: Exception | str) -> WalstreamError:
        """Return the error of what cannot be believed, unless the disk is full."""
        if isinstance(what, Exception) and folder_errors.is_full(self._folder, what):
            return folder_errors.no_room(self._folder)
        source = self._folder.name
        return StateDamaged(
            f"the state in {self._folder} is damaged: {what}",
            hint="restore the folder from a copy made while walstream was stopped, or "
            "reset the source: the next run starts from scratch",
            # a state that cannot be believed claims no slot
            repair=replace(
                RESET, command=f"walstream positions reset {source} --adopt-slot"
            ),
        )


def discard(folder: Path) -> None:
    """Delete a source's documents, believed or not; the caller holds the state."""
    try:
        for name in (_FILE, "lock.mdb"):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise folder_errors.refusal(folder, error) from error


def _beginning(
    transaction: lmdb.Transaction, prefix: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the entries whose name begins so, in order."""
    start = prefix.encode()
    cursor = transaction.cursor()
    if not (cursor.set_range(start) if start else cursor.first()):
        return
    for key, stored in cursor:
        name = bytes(key)
        if not name.startswith(start):
            return
        yield name.decode(), bytes(stored)
