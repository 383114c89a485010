"""Findings of `check` about the state folder, and its facts about a source.

Reads beside a running instance, and changes nothing: a folder that is missing is made
by `run`, not by whoever looks.
"""

import errno
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.errors import PermissionLacking, Repair, StateDamaged, WalstreamError
from walstream.finding import Finding, note, warning
from walstream.kafka.stored_topic import TOPICS, StoredTopic
from walstream.postgres.publication_memory import PUBLICATIONS, StoredPublication
from walstream.postgres.start_table import StoredState
from walstream.sources.figures import STREAM_FIGURES
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental import progress
from walstream.sources.postgres.incremental.progress import TableRequests
from walstream.sources.postgres.stored_state import stored_of
from walstream.state import folder_errors
from walstream.state.lock import holder
from walstream.state.store import LmdbStore

_LITTLE_SPACE: Final = 64 << 20
_OTHERS: Final = stat.S_IRWXO
_FILES: Final = ("lock", "data.mdb", "lock.mdb")


@dataclass(frozen=True, slots=True)
class StateFolderFacts:
    """Contents of a source's folder; empty before the first start."""

    stored: StoredState = StoredState()  # noqa: RUF009 - frozen
    publications: Mapping[str, StoredPublication] | None = None
    topics: Mapping[str, StoredTopic] = field(default_factory=dict)  # by `SINK/TOPIC`
    backfill: BackfillProgress | None = None  # what is left of one
    beside: TableRequests | None = None  # what is to be read beside the stream
    current_at: float | None = None  # what waits was committed after that, mostly


def user_of(folder: Path) -> str | None:
    """Return the process that uses a folder; None if none does, or it is unknown."""
    try:
        return holder(folder)
    except (OSError, PermissionLacking):
        return None


def look_at_folder(folder: Path) -> Iterator[Finding]:
    """Judge the folder of all sources: rights, room, and who is there."""
    subject = f"state folder {folder}"
    if pid := user_of(folder):
        yield note(
            "state-in-use",
            subject,
            f"walstream is running here, process {pid}",
            "the findings below are for a second instance; another run in this folder "
            "would be refused",
        )
    if problem := _unwritable(folder):
        yield Finding.of(problem, "state-unwritable", subject)
        return
    yield from _room(folder, subject)
    if folder.exists() and folder.stat().st_mode & _OTHERS:
        yield warning(
            "state-open",
            subject,
            "other users may read it",
            "it holds names of tables, topics and keys, and anyone who may write "
            "there can damage it",
            Repair(command=f"chmod o= {shlex.quote(str(folder))}"),
        )


def _unwritable(folder: Path) -> WalstreamError | None:
    """Find what would keep `run` from writing there."""
    here = folder_errors.existing(folder)
    number = 0
    if not here.is_dir():
        number = errno.ENOTDIR
    elif not os.access(here, os.W_OK | os.X_OK):
        number = errno.EACCES
    elif os.statvfs(here).f_flag & os.ST_RDONLY:
        number = errno.EROFS
    if number:
        return folder_errors.refusal(folder, OSError(number, os.strerror(number)))
    for name in _FILES:
        file = folder / name
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            what = f"{name}: {os.strerror(errno.EACCES)}"
            return folder_errors.refusal(folder, OSError(errno.EACCES, what))
    return None


def _room(folder: Path, subject: str) -> Iterator[Finding]:
    free = folder_errors.free(folder)
    if free < folder_errors.NEEDED:
        yield Finding.of(folder_errors.no_room(folder), "state-disk", subject)
    elif free < _LITTLE_SPACE:
        yield warning(
            "state-disk",
            subject,
            f"its disk has {free >> 20} MiB free",
            "without free space no position is stored and nothing is confirmed: "
            "PostgreSQL keeps all WAL meanwhile",
            Repair(then=f"free {_LITTLE_SPACE >> 20} MiB or more"),
        )


def look_at_source(folder: Path, slot: str) -> tuple[StateFolderFacts, list[Finding]]:
    """Read what a source's folder holds; where it cannot be believed, say so.

    `slot` is the one that the source names.
    """
    findings: list[Finding] = []
    known = StateFolderFacts()
    subject = f"state folder {folder}"
    try:
        if folder.exists() and (problem := _unwritable(folder)):
            raise problem
        with LmdbStore.open_read_only(folder) as positions:
            if positions is not None:
                positions.check_format()
                known = _read(positions, slot)
    except StateDamaged as error:
        findings.append(Finding.of(error, "state-damaged", subject))
    except WalstreamError as error:
        findings.append(Finding.of(error, "state-unwritable", subject))
    return known, findings


def _read(positions: LmdbStore, slot: str) -> StateFolderFacts:
    """Read every document: each checksum counts."""
    for name in positions.names(""):
        positions.read(name)
    figures = STREAM_FIGURES.read(positions)
    return StateFolderFacts(
        stored=stored_of(positions, slot),
        publications=PUBLICATIONS.read(positions),
        topics=TOPICS.read_all(positions),
        backfill=stored_progress.read(positions),
        beside=progress.read(positions),
        # a short run may not have heard how far the server was
        current_at=(figures.current_at or figures.at or None) if figures else None,
    )
