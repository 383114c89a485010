"""Positions on LMDB: the documents of one source, in a folder of its own.

Every document carries a checksum, and the position its previous generation, so that a
damaged file is noticed and never believed.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from walstream.errors import StateDamaged, WalstreamError
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import POSITION, PREVIOUS_POSITION, Position
from walstream.pipeline.state_document import (
    Entries,
    StateDocument,
    StoredDocuments,
)
from walstream.state import migration
from walstream.state.lmdb_environment import LmdbEnvironment
from walstream.state.lock import LOCK_WAIT_S

_FORMAT: Final = 2
_CHECKSUM_SIZE: Final = 4

Step = Callable[[StoredDocuments], Entries]
"""Returns the documents that are other ones in the next format; None deletes."""
_STEPS: Final[Mapping[int, Step]] = {1: migration.tables_apart}  # from each older one


@dataclass(frozen=True, slots=True)
class StateFormat:
    """Format of all documents of a folder."""

    version: int


FORMAT: Final = StateDocument("format", StateFormat)


class LmdbStore:
    """The documents of one source, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = LmdbEnvironment(folder)
        # where an older format is only read: what its documents are in this one
        self._migrated: dict[str, object] = {}

    def open(self, *, wait_s: float = LOCK_WAIT_S) -> Self:
        """Lock and open; raise StateDamaged when the file cannot be believed."""
        try:
            self._environment.open(wait_s)
            if self.check_format():
                self._migrate()
            else:
                self.write(FORMAT.entry(StateFormat(_FORMAT)))
        except WalstreamError:
            self.close()
            raise
        return self

    @classmethod
    @contextmanager
    def open_read_only(cls, folder: Path) -> "Iterator[LmdbStore | None]":
        """Read a folder that a running instance may be using; None: nothing is there.

        Takes no lock and writes nothing.
        """
        positions = cls(folder)
        try:
            positions._environment.open_to_read()
        except FileNotFoundError:
            yield None
            return
        try:
            positions._read_older()
            yield positions
        finally:
            positions.close()

    def check_format(self) -> bool:
        """Raise StateDamaged unless this walstream can read it; False: it is new."""
        found = FORMAT.read(self)
        if found is None and self.read(POSITION.name) is None:
            return False
        if found is None or found.version > _FORMAT:
            version = found and found.version
            raise StateDamaged(
                f"the state in {self._folder} has format {version}, but this "
                f"walstream reads format {_FORMAT}",
                hint="run the walstream that wrote it, or a newer one",
            )
        return True

    def _migrate(self) -> None:
        """Bring what an older walstream wrote to this format, a step at a time."""
        for version, changed in self._steps():
            # with its number, or not at all: no step is done twice, or by half
            self.write({**changed, **FORMAT.entry(StateFormat(version + 1))})

    def _read_older(self) -> None:
        """Read an older format as this one, and leave it as it is."""
        try:
            for _, changed in self._steps():
                self._migrated |= changed
        except StateDamaged:
            found = FORMAT.read(self)
            if found is None or found.version < _FORMAT:
                raise
            self._migrated.clear()  # a worker that starts migrated it meanwhile

    def _steps(self) -> Iterator[tuple[int, Entries]]:
        """Yield each step to this format, which is taken before the next."""
        found = FORMAT.read(self)
        for version in range(found.version if found else _FORMAT, _FORMAT):
            yield version, _STEPS[version](self)

    def close(self) -> None:
        self._environment.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, name: str) -> object | None:
        """Return one document; raise StateDamaged when its checksum is wrong."""
        if name in self._migrated:
            return self._migrated[name]
        stored = self._environment.get(name)
        return None if stored is None else self._unwrap(name, stored)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with `prefix`, in order."""
        found = dict.fromkeys(self._environment.names(prefix))
        for name, document in self._migrated.items():
            if document is None:
                found.pop(name, None)
            elif name.startswith(prefix):
                found[name] = None
        return sorted(found)

    def tree(self, name: str) -> Entries:
        """Return a document and all below it (`name/…`), as of one moment."""
        found = {
            one: self._unwrap(one, stored)
            for one, stored in self._environment.tree(name).items()
        }
        migrated = {
            one: document
            for one, document in self._migrated.items()
            if one == name or one.startswith(f"{name}/")
        }
        return {
            one: document
            for one, document in (found | migrated).items()
            if document is not None
        }

    def write(self, documents: Entries) -> None:
        """Write all or none, with fsync. Raises Transient when the disk is full."""
        self._environment.write(
            {
                name: None if document is None else _wrap(document)
                for name, document in documents.items()
            }
        )

    def position(self) -> Position | None:
        """Return where to resume, if anything was ever stored."""
        return POSITION.read(self)

    def store(self, position: Position, beside: Entries | None = None) -> None:
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

    def rewind(self, resume: Lsn, beside: Entries | None = None) -> None:
        """Go back, as an operator wished; what was left is kept as the previous one.

        Alone writes a lower position. One beyond the stored one would skip changes.
        """
        stored = self.position()
        if stored is None or resume > stored.resume:
            at = show(stored.resume) if stored else "no position"
            raise WalstreamError(
                f"{show(resume)} is not below the stored {at}: nothing was written"
            )
        documents = _generations(replace(stored, resume=resume), stored)
        self.write({**documents, **(beside or {})})

    def damaged(self, what: str) -> WalstreamError:
        """Return the error of a document that cannot be believed."""
        return self._environment.damaged(what)

    def _unwrap(self, name: str, stored: bytes) -> object:
        checksum, body = stored[:_CHECKSUM_SIZE], stored[_CHECKSUM_SIZE:]
        # the checksum of nothing is zero: four zero bytes would pass
        if not body or zlib.crc32(body).to_bytes(_CHECKSUM_SIZE, "big") != checksum:
            raise self.damaged(f"the checksum of {name!r} is wrong")
        return orjson.loads(body)


def _generations(position: Position, previous: Position | None) -> Entries:
    return {**POSITION.entry(position), **PREVIOUS_POSITION.entry(previous)}


def _wrap(document: object) -> bytes:
    body = orjson.dumps(document)
    return zlib.crc32(body).to_bytes(_CHECKSUM_SIZE, "big") + body
