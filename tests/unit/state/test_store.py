"""Documents on LMDB: all or none, never damaged unnoticed, never back."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lmdb
import pytest

from tests.support.deadline import wait_until
from walstream.errors import ConfigError, StateDamaged, Transient, WalstreamError
from walstream.pipeline.ports import PREVIOUS_POSITION, Position
from walstream.pipeline.state_document import (
    Entries,
    StateDocument,
    StoredDocuments,
)
from walstream.sources.postgres.backfill import stored_progress as kept
from walstream.sources.postgres.backfill.progress import BackfillProgress, Elsewhere
from walstream.sources.postgres.incremental import progress
from walstream.state.lmdb_environment import discard
from walstream.state.migration import tables_apart
from walstream.state.store import LmdbStore

POSITION = Position(
    resume=2**64 - 2, system_identifier=2**63, timeline=1, database="d", slot="s"
)


@pytest.fixture
def positions(tmp_path: Path) -> Iterator[LmdbStore]:
    with LmdbStore(tmp_path / "app") as opened:
        yield opened


def write_raw(folder: Path, name: str, stored: bytes) -> None:
    """Put bytes beside walstream's back."""
    with lmdb.open(str(folder)) as environment, environment.begin(write=True) as change:
        change.put(name.encode(), stored)


def test_what_was_written_is_read_back_by_the_next_process(tmp_path: Path) -> None:
    with LmdbStore(tmp_path / "app") as positions:
        positions.write({"a": {"n": [1, None, "é"]}, "b": "x"})
        positions.store(POSITION)
    with LmdbStore(tmp_path / "app") as positions:
        assert positions.read("a") == {"n": [1, None, "é"]}
        assert positions.position() == POSITION


def test_nothing_stored_is_none(positions: LmdbStore) -> None:
    assert positions.read("absent") is None
    assert positions.position() is None


def test_none_deletes(positions: LmdbStore) -> None:
    positions.write({"a": 1, "b": 2})
    positions.write({"a": None, "never": None})
    assert positions.read("a") is None
    assert positions.read("b") == 2


def test_names_are_listed_by_prefix(positions: LmdbStore) -> None:
    positions.write({"keys/s.t": 1, "keys/é": 2, "topics/x": 3})
    assert positions.names("keys/") == ["keys/s.t", "keys/é"]


def test_position_never_goes_back(positions: LmdbStore) -> None:
    positions.store(POSITION)
    positions.store(POSITION)
    with pytest.raises(WalstreamError, match="below the stored"):
        positions.store(replace(POSITION, resume=POSITION.resume - 1))
    assert positions.position() == POSITION


def test_previous_generation_is_kept(positions: LmdbStore) -> None:
    earlier = replace(POSITION, resume=5)
    positions.store(earlier)
    assert positions.read("position.previous") is None
    positions.store(POSITION)
    assert positions.read("position.previous") == {
        "resume": 5,
        "system_identifier": 2**63,
        "timeline": 1,
        "database": "d",
        "slot": "s",
    }


def test_a_rewind_goes_back_and_keeps_what_it_left(positions: LmdbStore) -> None:
    positions.store(POSITION)
    positions.rewind(5)
    assert positions.position() == replace(POSITION, resume=5)
    previous = PREVIOUS_POSITION.read(positions)
    assert previous is not None
    assert previous.resume == POSITION.resume
    positions.store(replace(POSITION, resume=6))


def test_what_a_rewind_ends_is_written_with_it_or_not_at_all(
    positions: LmdbStore,
) -> None:
    positions.store(POSITION)
    positions.rewind(5, {"eras/k/t": {"rules": ""}})
    assert positions.read("eras/k/t") == {"rules": ""}
    assert positions.position() == replace(POSITION, resume=5)
    with pytest.raises(WalstreamError, match="not below"):
        positions.rewind(6, {"eras/k/t": None})
    assert positions.read("eras/k/t") == {"rules": ""}


def test_a_rewind_never_goes_forward(positions: LmdbStore) -> None:
    with pytest.raises(WalstreamError, match="not below the stored no position"):
        positions.rewind(5)
    positions.store(replace(POSITION, resume=5))
    with pytest.raises(WalstreamError, match="not below the stored 0/5"):
        positions.rewind(6)
    assert positions.position() == replace(POSITION, resume=5)


def test_document_with_a_wrong_checksum_is_never_believed(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    with LmdbStore(folder) as positions:
        positions.store(POSITION)
    write_raw(folder, "position", b"\0\0\0\0{}")
    with (
        LmdbStore(folder) as positions,
        pytest.raises(StateDamaged, match="checksum of 'position'") as refused,
    ):
        positions.position()
    repair = "walstream positions reset app --adopt-slot"
    assert refused.value.repair.command == repair


@pytest.mark.parametrize("stored", [b"", b"\0", b"\0\0\0\0", b"garbage"])
def test_document_of_other_bytes_is_damaged(tmp_path: Path, stored: bytes) -> None:
    folder = tmp_path / "app"
    with LmdbStore(folder):
        pass
    write_raw(folder, "a", stored)
    with LmdbStore(folder) as positions, pytest.raises(StateDamaged):
        positions.read("a")


def test_file_of_other_bytes_is_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"no LMDB " * 2000)
    with pytest.raises(StateDamaged, match="not LMDB's"):
        LmdbStore(folder).open()


def test_damaged_state_lets_go_of_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"no LMDB")
    for _ in range(2):
        with pytest.raises(StateDamaged):
            LmdbStore(folder).open(wait_s=0)
    discard(folder)
    with LmdbStore(folder) as positions:
        assert positions.position() is None


def test_second_opener_is_refused(positions: LmdbStore, tmp_path: Path) -> None:
    del positions
    with pytest.raises(ConfigError, match="in use by process"):
        LmdbStore(tmp_path / "app").open(wait_s=0)


def test_state_of_a_newer_walstream_is_refused(tmp_path: Path) -> None:
    with LmdbStore(tmp_path / "app") as positions:
        positions.write({"format": {"version": 99}})
    with pytest.raises(StateDamaged, match="99") as refused:
        LmdbStore(tmp_path / "app").open()
    assert refused.value.exit_code == 3
    assert "newer" in refused.value.hint


def test_state_of_an_older_walstream_is_migrated_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LmdbStore(tmp_path / "app") as old:
        old.store(POSITION)
        old.write({"a": 1, "gone": 2, "format": {"version": 1}})
    monkeypatch.setattr("walstream.state.store._FORMAT", 3)
    steps = {
        1: lambda kept: {"b": kept.read("a"), "a": None},
        2: lambda kept: {"b": kept.read("b") + 1, "gone": None},
    }
    monkeypatch.setattr("walstream.state.store._STEPS", steps)
    for _ in range(2):  # once: the second opening finds nothing to do
        with LmdbStore(tmp_path / "app") as positions:
            assert positions.position() == POSITION
            names = positions.names("")
            assert names == ["b", "format", "position"]
            assert positions.read("b") == 2
            assert positions.read("format") == {"version": 3}


def test_a_step_that_fails_leaves_the_older_format_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LmdbStore(tmp_path / "app") as old:
        old.write({"a": 1})

    def broken(_kept: LmdbStore) -> dict[str, int]:
        raise WalstreamError("a defect")

    with monkeypatch.context() as newer:
        newer.setattr("walstream.state.store._FORMAT", 3)
        newer.setattr("walstream.state.store._STEPS", {2: broken})
        with pytest.raises(WalstreamError, match="a defect"):
            LmdbStore(tmp_path / "app").open()
    with LmdbStore(tmp_path / "app") as positions:
        assert positions.read("a") == 1


OLD_BACKFILL = {
    "lsn": 99,
    "tables": ["public.b", "public.a"],
    "replace": ["public.a"],
    "others": ["public.b"],
    "rows": 7,
    "failed": {"public.c": "it is broken"},
    "elsewhere": {"session": "7 2026-01-01", "chunks": 3},
    "begun": {"public.a": ["id"], "public.b": None, "public.c": []},
}
_WISH: dict[str, Any] = {
    "replace": False,
    "truncated": False,
    "after": None,
    "key": [],
    "rows": 0,
}
OLD_BESIDE = {
    "next_chunk": 1 << 25,
    "next_serial": 9,
    "tables": {
        "public.z": {**_WISH, "error": "", "serial": 8},
        "public.y": {**_WISH, "error": "no", "serial": 3, "after": ["5"], "floor": 2},
    },
}


def test_tables_that_were_kept_in_one_document_are_kept_each_by_itself(
    tmp_path: Path,
) -> None:
    with LmdbStore(tmp_path / "app") as old:
        old.store(POSITION)
        old.write(
            {
                "format": {"version": 1},
                "backfill": OLD_BACKFILL,
                "beside": OLD_BESIDE,
            }
        )
    with LmdbStore.open_read_only(tmp_path / "app") as looked:  # it stays as it is
        assert looked is not None
        before = kept.read(looked), progress.read(looked)
        assert looked.names("backfill/") == [
            f"backfill/public.{name}" for name in "abc"
        ]
        assert looked.read("format") == {"version": 1}
    with LmdbStore(tmp_path / "app") as positions:
        assert positions.read("format") == {"version": 2}
        assert {*positions.names("backfill/"), *positions.names("beside/")} == {
            *("backfill/public.a", "backfill/public.b", "backfill/public.c"),
            *("beside/public.y", "beside/public.z"),
        }
        assert (kept.read(positions), progress.read(positions)) == before
    record, wishes = before
    assert record == BackfillProgress(
        99,
        ("public.b", "public.a"),
        ("public.a",),
        ("public.b",),
        7,
        {"public.c": "it is broken"},
        Elsewhere("7 2026-01-01", 3),
        {"public.a": ("id",), "public.b": None, "public.c": ()},
    )
    assert wishes is not None
    assert list(wishes.tables) == ["public.z", "public.y"]
    assert wishes.tables["public.y"].after == ("5",)
    assert (wishes.next_chunk, wishes.next_serial) == (1 << 25, 9)


MIGRATE = """
import sys
from pathlib import Path
from walstream.state.store import LmdbStore
with LmdbStore(Path(sys.argv[1])):
    pass
"""


def test_a_folder_that_a_worker_migrates_meanwhile_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "app"
    with LmdbStore(folder) as old:
        old.write({"format": {"version": 1}, "backfill": OLD_BACKFILL})

    def overtaken(found: StoredDocuments) -> Entries:
        subprocess.run([sys.executable, "-c", MIGRATE, str(folder)], check=True)
        return tables_apart(found)

    monkeypatch.setattr("walstream.state.store._STEPS", {1: overtaken})
    with LmdbStore.open_read_only(folder) as looked:
        assert looked is not None
        record = kept.read(looked)
    assert record is not None
    assert record.tables == ("public.b", "public.a")


def test_a_tree_is_a_document_and_what_is_below_it(positions: LmdbStore) -> None:
    positions.write({"a": 1, "a/x": 2, "a/y": 3, "a0": 4, "ab/x": 5, "a!": 6})
    assert positions.tree("a") == {"a": 1, "a/x": 2, "a/y": 3}
    assert positions.tree("ab") == {"ab/x": 5}
    assert positions.tree("b") == {}
    assert positions.names("a/") == ["a/x", "a/y"]


def test_documents_are_for_this_user_alone(
    positions: LmdbStore, tmp_path: Path
) -> None:
    positions.write({"a": 1})
    assert (tmp_path / "app" / "data.mdb").stat().st_mode & 0o777 == 0o600


def test_more_than_the_map_holds_is_refused_and_nothing_lost(
    positions: LmdbStore,
) -> None:
    positions.write({"a": 1})
    with pytest.raises(Transient, match="larger than the file may be") as refused:
        positions.write({"a": 2, "huge": "x" * (257 << 20)})
    assert "max_gaps" in refused.value.hint
    assert "free space" not in refused.value.hint
    assert positions.read("a") == 1


def test_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "app").touch()
    with pytest.raises(Transient, match="state folder"):
        LmdbStore(tmp_path / "app").open()


def test_closed_state_cannot_be_used(tmp_path: Path) -> None:
    positions = LmdbStore(tmp_path / "app")
    with pytest.raises(WalstreamError, match="not open"):
        positions.read("a")


HOLDER = """
import sys
from pathlib import Path
from walstream.state.store import LmdbStore
with LmdbStore(Path(sys.argv[1])) as positions:
    for number in range(1, 1_000_000):
        positions.write({"a": {"n": number}, "filler": "x" * (number % 9000)})
        if number == 1:
            print("holds", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Number:
    n: int = 0


NUMBER = StateDocument("a", Number)


def test_it_is_read_beside_a_process_that_writes(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holds\n"
        seen: list[int] = []

        def look() -> bool:
            with LmdbStore.open_read_only(folder) as found:
                assert found is not None
                seen.append((NUMBER.read(found) or Number()).n)
            return len(seen) >= 50 and seen[-1] > seen[0]

        wait_until(look, 30, "it sees what is written meanwhile")
        assert process.poll() is None
        process.kill()
    assert sorted(seen) == seen
    assert seen[-1] > seen[0]
    with LmdbStore(folder) as positions:  # and it left nothing in the way
        assert (NUMBER.read(positions) or Number()).n >= seen[-1]


def test_reading_beside_changes_and_makes_nothing(tmp_path: Path) -> None:
    with LmdbStore.open_read_only(tmp_path / "none") as found:
        assert found is None
    assert not (tmp_path / "none").exists()
    with LmdbStore(tmp_path / "app") as positions:
        positions.store(POSITION)
    with LmdbStore.open_read_only(tmp_path / "app") as found:
        assert found is not None
        assert found.position() == POSITION
        with pytest.raises(WalstreamError):
            found.write({"a": 1})
    (tmp_path / "app" / "data.mdb").write_bytes(b"\xff" * 20_000)
    with pytest.raises(StateDamaged), LmdbStore.open_read_only(tmp_path / "app"):
        pass
