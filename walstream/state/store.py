"""Positions on LMDB: one environment a source, locked by the process that uses it.

Every document carries a checksum, and the position its previous generation, so that a
damaged file is noticed and never believed. LMDB itself keeps the file whole through a
crash: no writemap, every commit with fsync.
"""

import errno
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import lmdb
import orjson

from walstream.errors import (
    RESET,
    PermissionLacking,
    StateDamaged,
    Transient,
    WalstreamError,
)
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import Position
from walstream.state import creation, folder_errors, lmdb_check, migration
from walstream.state.lock import LOCK_WAIT_S, FolderLock, holder

_FORMAT: Final = 2
# address space, not disk: the data are a few kilobytes, unless a million gaps are kept
_MAP_SIZE: Final = 256 << 20
_CHECKSUM_SIZE: Final = 4
_FILE: Final = "data.mdb"
_READERS_EVERY_S: Final = 60.0
_DAMAGE: Final = (  # what no free space will cure
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
)

Step = Callable[["LmdbPositions"], Mapping[str, Any]]
"""Gives the documents that are other ones in the next format; None deletes."""
_STEPS: Final[Mapping[int, Step]] = {1: migration.tables_apart}  # from each older one


class LmdbPositions:
    """The documents of one source, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FolderLock(folder)
        self._environment: lmdb.Environment | None = None
        # threads may still be at it when the source ends; LMDB does not survive that
        self._guard = threading.RLock()
        self._readers_at = 0.0  # when the readers' table is looked at again

    def open(self, *, wait_s: float = LOCK_WAIT_S) -> Self:
        """Lock and open; raise StateDamaged when the file cannot be believed."""
        try:
            self._lock.acquire(wait_s)
            lmdb_check.check(self._folder / _FILE)
            creation.make(self._folder, _MAP_SIZE)
            creation.reserve(self._folder)
            self._environment = lmdb.open(
                str(self._folder),
                map_size=_MAP_SIZE,
                subdir=True,
                writemap=False,
                sync=True,
                metasync=True,
                lock=True,
                mode=0o600,
            )
            if self.check_format():
                self._migrate()
            else:
                self.write({"format": {"version": _FORMAT}})
        except lmdb.ReadonlyError as error:  # of another user's lock.mdb: EACCES
            self.close()
            denied = PermissionError(errno.EACCES, str(error))
            raise folder_errors.refusal(self._folder, denied) from error
        except (lmdb.Error, lmdb_check.Broken) as error:
            self.close()
            raise self._damaged(error) from error
        except OSError as error:
            self.close()
            raise folder_errors.refusal(self._folder, error) from error
        except WalstreamError:
            self.close()
            raise
        return self

    @classmethod
    @contextmanager
    def beside(cls, folder: Path) -> "Iterator[LmdbPositions | None]":
        """Read a folder that a running instance may be using; None: nothing is there.

        Takes no lock and writes nothing. While a worker writes, the file's tree cannot
        be walked: LMDB's own readers' table keeps what is read whole.
        """
        positions = cls(folder)
        try:
            positions._open_to_read()
        except FileNotFoundError:
            yield None
            return
        try:
            yield positions
        finally:
            positions.close()

    def _open_to_read(self) -> None:
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
            raise self._damaged(error) from error

    def _reserved(self) -> bool:
        """Reserve room for a reader's mark; without any, nobody writes either."""
        try:
            creation.reserve(self._folder)
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

    def check_format(self) -> bool:
        """Raise StateDamaged unless this walstream can read it; False: it is new."""
        found = self.read("format")
        if found is None and self.read("position") is None:
            return False
        if found is None or found["version"] > _FORMAT:
            raise StateDamaged(
                f"the state in {self._folder} has the format {found}, this walstream"
                f" knows {_FORMAT}",
                hint="run the walstream that wrote it, or a newer one",
            )
        return True

    def _migrate(self) -> None:
        """Bring what an older walstream wrote to this format, a step at a time."""
        while (version := (self.read("format") or {})["version"]) < _FORMAT:
            changed = _STEPS[version](self)
            # with its number, or not at all: no step is done twice, or by half
            self.write({**changed, "format": {"version": version + 1}})

    def close(self) -> None:
        with self._guard:
            if self._environment is not None:
                self._environment.close()
                self._environment = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, name: str) -> Any | None:
        """Read one document; raise StateDamaged when its checksum is wrong."""
        with self._reading() as transaction:
            stored = transaction.get(name.encode())
        return None if stored is None else self._unwrap(name, bytes(stored))

    @contextmanager
    def _reading(self) -> Iterator[lmdb.Transaction]:
        try:
            with self._opened().begin() as transaction:
                yield transaction
        except lmdb.Error as error:
            raise self._damaged(str(error)) from error

    def names(self, prefix: str) -> list[str]:
        """List the documents whose name begins with `prefix`."""
        with self._reading() as transaction:
            return [name for name, _ in _beginning(transaction, prefix)]

    def tree(self, name: str) -> dict[str, Any]:
        """Read a document and all below it (`name/…`), as of one moment."""
        with self._reading() as transaction:
            head = transaction.get(name.encode())
            found = {} if head is None else {name: bytes(head)}
            found |= dict(_beginning(transaction, f"{name}/"))
        return {one: self._unwrap(one, stored) for one, stored in found.items()}

    def write(self, documents: Mapping[str, Any]) -> None:
        """Write all or none, with fsync. Raises Transient when the disk is full."""
        try:
            with self._guard:
                if time.monotonic() >= self._readers_at:
                    self._clear_readers()
                try:
                    self._put(documents)
                except lmdb.MapFullError:
                    self._clear_readers()
                    self._put(documents)
        except _DAMAGE as error:
            raise self._damaged(str(error)) from error
        except lmdb.MapFullError as error:
            raise Transient(
                f"state folder {self._folder}: cannot write: the positions of this"
                f" source are larger than the file may be, {_MAP_SIZE >> 20} MiB",
                hint="lower max_gaps or gap_timeout of its tables: fewer missing keys"
                " are remembered then",
            ) from error
        except (lmdb.Error, OSError) as error:
            if folder_errors.is_full(self._folder, error):
                raise folder_errors.no_room(self._folder) from error
            raise Transient(
                f"state folder {self._folder}: cannot write: {error}",
                hint="free space there: walstream confirms nothing meanwhile,"
                " and goes on by itself",
            ) from error

    def _put(self, documents: Mapping[str, Any]) -> None:
        with self._opened().begin(write=True) as transaction:
            for name, document in documents.items():
                if document is None:
                    transaction.delete(name.encode())
                else:
                    transaction.put(name.encode(), _wrap(document))

    def _clear_readers(self) -> None:
        """Forget readers that were killed: no page that they read is used again."""
        self._readers_at = time.monotonic() + _READERS_EVERY_S
        self._opened().reader_check()

    def position(self) -> Position | None:
        """Read where to resume, if anything was ever stored."""
        stored = self.read("position")
        return None if stored is None else Position(**stored)

    def store(
        self, position: Position, beside: Mapping[str, Any] | None = None
    ) -> None:
        """Store the position; one that would go back is a defect, and refused.

        Documents `beside` it share its fsync.
        """
        previous = self.position()
        if previous is not None and position.resume < previous.resume:
            raise WalstreamError(
                f"position {show(position.resume)} is below the stored"
                f" {show(previous.resume)}: a defect, nothing was written"
            )
        self.write({**_generations(position, previous), **(beside or {})})

    def rewind(self, resume: Lsn) -> None:
        """Go back, as an operator wished; what was left is kept as the previous one.

        Alone writes a lower position. One beyond the stored one would skip changes.
        """
        stored = self.position()
        if stored is None or resume > stored.resume:
            at = show(stored.resume) if stored else "no position"
            raise WalstreamError(
                f"{show(resume)} is not below the stored {at}: nothing was written"
            )
        self.write(_generations(replace(stored, resume=resume), stored))

    def _opened(self) -> lmdb.Environment:
        if self._environment is None:
            raise WalstreamError(f"the state in {self._folder} is not open")
        return self._environment

    def _unwrap(self, name: str, stored: bytes) -> Any:
        checksum, body = stored[:_CHECKSUM_SIZE], stored[_CHECKSUM_SIZE:]
        # the checksum of nothing is zero: four zero bytes would pass
        if not body or zlib.crc32(body).to_bytes(_CHECKSUM_SIZE, "big") != checksum:
            raise self._damaged(f"the checksum of {name!r} is wrong")
        return orjson.loads(body)

    def _damaged(self, what: Exception | str) -> WalstreamError:
        """Make the error of what cannot be believed, unless the disk is full."""
        if isinstance(what, Exception) and folder_errors.is_full(self._folder, what):
            return folder_errors.no_room(self._folder)
        source = self._folder.name
        return StateDamaged(
            f"the state in {self._folder} is damaged: {what}",
            hint="restore the folder from a copy made while walstream was stopped, or"
            " reset the source: the next run starts anew",
            repair=RESET.of_source(source),
        )


def discard(folder: Path) -> None:
    """Delete a source's documents, believed or not; the caller holds the state."""
    for name in (_FILE, "lock.mdb"):
        (folder / name).unlink(missing_ok=True)


def _beginning(
    transaction: lmdb.Transaction, prefix: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the documents whose name begins so, in order."""
    start = prefix.encode()
    cursor = transaction.cursor()
    if not (cursor.set_range(start) if start else cursor.first()):
        return
    for key, stored in cursor:
        name = bytes(key)
        if not name.startswith(start):
            return
        yield name.decode(), bytes(stored)


def _generations(position: Position, previous: Position | None) -> dict[str, Any]:
    return {
        "position": asdict(position),
        "position.previous": asdict(previous) if previous else None,
    }


def _wrap(document: Any) -> bytes:
    body = orjson.dumps(document)
    return zlib.crc32(body).to_bytes(_CHECKSUM_SIZE, "big") + body
