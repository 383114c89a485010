"""A disk with the promise of LMDB: all of a write or none, durable when it returns."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from tests.simulation.world import Killed, Process, World
from walstream.errors import ConfigError, StateDamaged, Transient, WalstreamError

_CHECKSUM: Final = 4
Documents = dict[str, bytes]


class SimDisk:
    """Folders of documents, and who has each locked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folders: dict[str, Documents] = {}
        self.locks: dict[str, Process] = {}
        self.full_until = 0.0
        self.failing = 0  # so many writes fail, though some are durable
        self.discarded: Callable[[str], None] = lambda _folder: None
        self.written: Callable[[str, Documents], None] = lambda _folder, _now: None

    def holder(self, folder: Path | str) -> Process | None:
        """Return who has a folder locked."""
        found = self.locks.get(str(folder))
        return None if found is None or found.dead else found

    def await_unlocked(self, folder: str, wait_s: float) -> None:
        """Wait until nobody has a folder locked, or raise ConfigError after so long."""
        if self.holder(folder) is None:
            return
        if not self.world.wait(lambda: self.holder(folder) is None, wait_s):
            raise ConfigError("the state folder is in use")

    def discard(self, folder: Path) -> None:
        self.world.port("discard")
        self.folders.pop(str(folder), None)
        self.discarded(str(folder))

    def commit(self, folder: str, entries: Mapping[str, bytes | None]) -> None:
        documents = dict(self.folders.get(folder, {}))
        for name, stored in entries.items():
            if stored is None:
                documents.pop(name, None)
            else:
                documents[name] = stored
        self.folders[folder] = documents
        self.world.note(f"write {folder} {sorted(entries)}")
        self.written(folder, documents)


class SimLock:
    """Exclusive use of a folder, as `FolderLock`."""

    def __init__(self, disk: SimDisk, folder: Path) -> None:
        self._disk, self._folder = disk, str(folder)
        self._held = False

    def acquire(self, wait_s: float = 0.0) -> None:
        self._disk.world.port("lock")
        self._disk.await_unlocked(self._folder, wait_s)
        if self._disk.world.owner is not None:
            self._disk.locks[self._folder] = self._disk.world.owner
        self._held = True

    def release(self) -> None:
        if self._held:
            self._disk.locks.pop(self._folder, None)
        self._held = False


class SimEnvironment:
    """One folder, as `LmdbEnvironment` has it."""

    def __init__(self, disk: SimDisk, folder: Path) -> None:
        self._disk = disk
        self._folder = str(folder)
        self._open = False
        self._locked = False

    def open(self, wait_s: float) -> None:
        self._disk.world.port("open state")
        self._disk.await_unlocked(self._folder, wait_s)
        if (owner := self._disk.world.owner) is not None:
            self._disk.locks[self._folder] = owner
        self._open = self._locked = True

    def open_to_read(self) -> None:
        if self._folder not in self._disk.folders:
            raise FileNotFoundError
        self._open = True

    def close(self) -> None:
        if self._locked:
            self._disk.locks.pop(self._folder, None)
        self._open = self._locked = False

    @property
    def _documents(self) -> Documents:
        if not self._open:
            raise WalstreamError(f"the state in {self._folder} is not open")
        return self._disk.folders.get(self._folder, {})

    def get(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._documents if name.startswith(prefix))

    def tree(self, name: str) -> Documents:
        return {
            one: stored
            for one, stored in self._documents.items()
            if one == name or one.startswith(f"{name}/")
        }

    def write(self, entries: Mapping[str, bytes | None]) -> None:
        disk = self._disk
        disk.world.port("write")
        if not self._open:
            raise WalstreamError(f"the state in {self._folder} is not open")
        if disk.world.now < disk.full_until:
            raise Transient(f"state folder {self._folder}: no space is left")
        try:
            disk.world.port("fsync")
        except Killed:
            if disk.world.random.random() < 0.5:
                disk.commit(self._folder, entries)
            raise
        if disk.failing:
            disk.failing -= 1
            if disk.world.random.random() < 0.5:
                disk.commit(self._folder, entries)
            raise Transient(f"state folder {self._folder}: cannot write: EIO")
        disk.commit(self._folder, entries)
        disk.world.port("written")

    def damaged(self, what: object) -> WalstreamError:
        return StateDamaged(f"the state in {self._folder} is damaged: {what}")


def read(documents: Documents, name: str) -> dict[str, Any] | None:
    stored = documents.get(name)
    return orjson.loads(stored[_CHECKSUM:]) if stored else None
