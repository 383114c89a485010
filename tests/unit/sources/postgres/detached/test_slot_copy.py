"""Copies of a slot that nobody reads are named, and no other."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from walstream.postgres import slot
from walstream.postgres.slot import Slot
from walstream.sources.postgres.detached import slot_copy
from walstream.sources.postgres.detached.slot_copy import Home, forgotten


def copy(name: str, pid: int | None) -> Slot:
    return Slot(name, "logical", "pgoutput", "shop", pid, "reserved", None, 100)


def test_one_that_another_instance_reads_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = {"s_a": copy("s_a", None), "s_b": copy("s_b", 7)}
    monkeypatch.setattr(slot_copy, "session", lambda _: nullcontext())
    monkeypatch.setattr(slot, "find", lambda _, name: there.get(name))
    home = Home("app", "", "s", tmp_path)
    assert forgotten(home, ["a", "b", "c"]) == ["s_a"]
