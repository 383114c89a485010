"""A Kafka that lives for minutes at most: it compiles little, and is formatted once.

Half of what it would take of a processor is its start; three of them idle all along. Of
that start, half is the reading of classes: an archive keeps them read (JEP 350). A
broker of its own writes it, once for a checkout. Java ignores one that does not fit.
"""

import fcntl
import re
import uuid
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from walstream.testing.servers import LocalKafka
from walstream.testing.servers.process import Child

_COMPILES_LITTLE: Final = "-XX:TieredStopAtLevel=1"
_CACHE: Final = Path(__file__).parents[3] / ".pytest_cache" / "java"
_BROKER: Final = "kafka.Kafka"  # the class that `LocalKafka` runs
_IDENTITY: Final = re.compile(rb"^((?:cluster|directory)\.id=).*$", re.MULTILINE)


class BriefKafka(LocalKafka):
    """As `LocalKafka`, of which only the first of this process runs its tool."""

    _formatted: ClassVar[dict[str, bytes]] = {}  # by the file's name

    def start(self) -> None:
        """Back when it takes connections."""
        _write(self._archive)
        super().start()

    @property
    def _archive(self) -> Path:
        """The archive of this broker's classes, by the files that hold them."""
        classes = uuid.uuid5(uuid.NAMESPACE_URL, ":".join(map(str, self._class_path)))
        return _CACHE / f"kafka-{classes}.jsa"

    def _java_child(self, *arguments: str) -> Child:
        archive = self._archive
        kept = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
        return super()._java_child(_COMPILES_LITTLE, *kept, *arguments)

    def _format(self) -> None:
        if not self._formatted:
            super()._format()
            made = [path for path in self.data.iterdir() if path.is_file()]
            self._formatted.update((path.name, path.read_bytes()) for path in made)
            return
        self.data.mkdir()
        for name, content in self._formatted.items():
            (self.data / name).write_bytes(_IDENTITY.sub(_renewed, content))


class _ArchivedKafka(LocalKafka):
    """A broker that writes the classes it has read when it is stopped."""

    def __init__(self, archive: Path) -> None:
        super().__init__()
        self._archive = archive

    def _java_child(self, *arguments: str) -> Child:
        # its storage tool would write an archive, too
        written = [f"-XX:ArchiveClassesAtExit={self._archive}"]
        kept = written if _BROKER in arguments else []
        return super()._java_child(_COMPILES_LITTLE, *kept, *arguments)


def _write(archive: Path) -> None:
    """Write an archive, unless it exists or another process writes it now."""
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh = archive.with_suffix(".new")
        with _ArchivedKafka(fresh) as kafka:
            kafka.stop()
        if fresh.exists():
            fresh.rename(archive)


def _renewed(found: re.Match[bytes]) -> bytes:
    """Return an identity that no other broker has, as the tool makes."""
    return found[1] + urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
