"""Which tables the next start reads anew in any case."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from walstream.config import load
from walstream.errors import Transient
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental.progress import (
    IncrementalProgress,
    TableRequest,
    TableRequests,
)
from walstream.sources.postgres.publications import capture_of, read_anew
from walstream.testing import MemoryStore


def test_what_is_to_be_replaced_and_not_begun_is_read_anew() -> None:
    record = BackfillProgress(0, ("public.a", "public.b"), replace=("public.a",))
    wishes = {
        "public.c": TableRequest(replace=True),
        "public.d": TableRequest(replace=True, truncated=True),  # goes on where it was
        "public.e": TableRequest(),
    }
    assert read_anew(record, TableRequests(wishes)) == {"public.a", "public.c"}
    assert read_anew(None, None) == set()


class _Durable(MemoryStore):
    """A store of which each write fails, and is on disk all the same."""

    def write(self, documents: Mapping[str, object]) -> None:
        super().write(documents)
        raise Transient("EIO")


def test_a_wish_counts_when_it_was_granted_not_when_it_is_on_disk(
    tmp_path: Path,
) -> None:
    """This process reads what it knows of: else nothing would be read, and none ask."""
    file = tmp_path / "walstream.toml"
    file.write_text(
        'state = "state"\n[sources.app]\nkind = "postgres"\nsinks = ["log"]\n'
        'dsn = "postgresql://localhost/app"\n[sinks.log]\nkind = "log"\n',
        "utf-8",
    )
    config = load(file, {})
    positions = _Durable()
    progress = IncrementalProgress(positions)
    source = config.postgres_source("app")
    capture = capture_of(config, "app", source, positions, progress)
    with pytest.raises(Transient):
        progress.ask(["public.a"], replace=True)
    assert capture.mending.asked() == set()
