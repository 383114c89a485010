"""The state folder is judged and read, beside whoever uses it, and never changed."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import lmdb
import pytest

from walstream.admin.check.state import (
    StateFolderFacts,
    look_at_folder,
    look_at_source,
    user_of,
)
from walstream.finding import Finding, Severity
from walstream.kafka.stored_topic import StoredTopic
from walstream.pipeline.ports import Position
from walstream.postgres.publication_memory import PUBLICATIONS, StoredPublication
from walstream.postgres.start_table import StoredState
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore

POSITION = Position(
    resume=7, system_identifier=1, timeline=1, database="d", slot="walstream"
)


PUBLICATION = StoredPublication(1, frozenset({"insert"}), via_root=False)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def source(folder: Path) -> Path:
    """Keep what a source keeps."""
    with LmdbStore(folder / "app") as positions:
        positions.store(POSITION)
        positions.write(
            {
                "intent": {"slot": "walstream"},
                **PUBLICATIONS.entry({"walstream": PUBLICATION}),
                "topics/kafka/t": {"partitions": 1, "identity": "x"},
                "figures": {"current_at": 5.5, "ops": 1},
            }
        )
    return folder / "app"


def only(findings: list[Finding]) -> Finding:
    (found,) = findings
    return found


def test_a_folder_that_is_fine_or_not_there_yet_is_not_mentioned(
    folder: Path, tmp_path: Path
) -> None:
    assert not list(look_at_folder(folder))
    assert not list(look_at_folder(tmp_path / "not" / "yet"))
    assert not (tmp_path / "not").exists()


def test_a_folder_that_cannot_be_made_ends_run_with_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = only(list(look_at_folder(tmp_path / "file" / "state")))
    assert (found.code, found.exit_code) == ("state-unwritable", 2)
    assert "Not a directory" in found.what


def test_missing_rights_end_run_with_4(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root may write anywhere: asked of another user's rights
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = only(list(look_at_folder(folder)))
    assert (found.severity, found.exit_code) == (Severity.STOP, 4)
    assert "Permission denied" in found.what


def test_a_file_of_another_user_is_named(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != source / "data.mdb")
    known, findings = look_at_source(source, "walstream")
    assert "data.mdb: Permission denied" in only(findings).what
    assert known == StateFolderFacts()


def test_a_folder_that_others_may_read_is_a_warning_with_its_cure(
    folder: Path,
) -> None:
    folder.chmod(0o755)
    found = only(list(look_at_folder(folder)))
    assert (found.code, found.severity) == ("state-open", Severity.WARNING)
    assert found.repair.command == f"chmod o= {folder}"


def test_little_room_is_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 30, 0, 63 << 20))
    found = only(list(look_at_folder(folder)))
    assert (found.code, found.severity) == ("state-disk", Severity.WARNING)
    assert "63 MiB" in found.what


def test_no_room_at_all_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 30, 0, 5 << 10))
    found = only(list(look_at_folder(folder)))
    assert (found.code, found.severity) == ("state-disk", Severity.STOP)
    assert found.exit_code == 5
    assert "no space left on device (0 MiB free)" in found.what


def test_a_folder_in_use_is_a_note_that_names_the_process(folder: Path) -> None:
    assert user_of(folder) is None
    lock = FolderLock(folder)
    lock.acquire()
    found = only(list(look_at_folder(folder)))
    assert found.severity is Severity.NOTE
    assert f"process {os.getpid()}" in found.what
    assert user_of(folder) == str(os.getpid())
    lock.release()


def test_what_a_source_keeps_is_read(source: Path) -> None:
    known, findings = look_at_source(source, "walstream")
    assert not findings
    assert known == StateFolderFacts(
        stored=StoredState(POSITION, intent=True, slot="walstream"),
        publications={"walstream": PUBLICATION},
        topics={"kafka/t": StoredTopic(1, "x")},
        current_at=5.5,
    )


def test_it_is_read_while_another_uses_it(source: Path) -> None:
    lock = FolderLock(source)
    lock.acquire()
    assert look_at_source(source, "walstream")[0].stored.position == POSITION
    lock.release()


def test_a_source_that_never_ran_knows_nothing(folder: Path) -> None:
    assert look_at_source(folder / "app", "walstream") == (StateFolderFacts(), [])
    assert not (folder / "app").exists()


def test_damage_stops_with_the_command_that_repairs(source: Path) -> None:
    (source / "data.mdb").write_bytes(b"\xff" * 20_000)
    known, findings = look_at_source(source, "walstream")
    found = only(findings)
    assert known == StateFolderFacts()
    assert (found.code, found.exit_code) == ("state-damaged", 3)
    assert found.repair.command == "walstream positions reset app --adopt-slot"


def test_every_checksum_counts(source: Path) -> None:
    with lmdb.open(str(source)) as environment, environment.begin(write=True) as change:
        change.put(b"keys/public.t", b"\0\0\0\0{}")
    assert (
        "checksum of 'keys/public.t'"
        in only(look_at_source(source, "walstream")[1]).what
    )


def test_a_newer_walstreams_state_is_not_read(source: Path) -> None:
    with LmdbStore(source) as positions:
        positions.store(replace(POSITION, resume=8))
        positions.write({"format": {"version": 99}})
    found = only(look_at_source(source, "walstream")[1])
    assert found.exit_code == 3
    assert "99" in found.what
