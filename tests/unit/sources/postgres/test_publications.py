"""Which tables the next start reads anew in any case."""

from dataclasses import replace
from pathlib import Path

import pytest

from walstream.config import Config, load
from walstream.errors import Transient
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental.progress import (
    IncrementalProgress,
    TableRequest,
    TableRequests,
)
from walstream.sources.postgres.publications import capture_of, read_anew
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty


def test_what_is_to_be_replaced_and_not_begun_is_read_anew() -> None:
    record = BackfillProgress(0, ("public.a", "public.b"), replace=("public.a",))
    wishes = {
        "public.c": TableRequest(replace=True),
        "public.d": TableRequest(replace=True, truncated=True),  # goes on where it was
        "public.e": TableRequest(),
    }
    assert read_anew(record, TableRequests(wishes)) == {"public.a", "public.c"}
    assert read_anew(None, None) == set()


def _config(folder: Path, source: str = "") -> Config:
    file = folder / "walstream.toml"
    file.write_text(
        'state = "state"\n[sources.app]\nkind = "postgres"\nsinks = ["log"]\n'
        f'dsn = "postgresql://localhost/app"\n{source}[sinks.log]\nkind = "log"\n',
        "utf-8",
    )
    return load(file, {})


@pytest.mark.parametrize(
    ("fault", "asked"), [(Reject, set()), (FailAfterWrite, {"public.a"})]
)
def test_a_wish_whose_write_failed_counts_where_it_is_on_disk(
    tmp_path: Path, fault: type[Reject | FailAfterWrite], asked: set[str]
) -> None:
    """This process reads it then, as the next one would: none needs to ask for it."""
    config = _config(tmp_path)
    positions = faulty(MemoryStore(), write=[fault(Transient("EIO"))])
    progress = IncrementalProgress(positions)
    source = config.postgres_source("app")
    capture = capture_of(config, "app", source, positions, progress)
    with pytest.raises(Transient):
        progress.ask(["public.a"], replace=True)
    assert capture.mending.asked() == asked == progress.wishes().keys()


def test_a_table_that_joins_again_while_it_is_read_begins_once_more(
    tmp_path: Path,
) -> None:
    """It may be another one of the name, or its changes went unpublished meanwhile."""
    positions = MemoryStore()
    progress = IncrementalProgress(positions)
    config = _config(tmp_path, 'backfill_where = {"public.b" = "id > 1"}\n')
    source = config.postgres_source("app")
    capture = capture_of(config, "app", source, positions, progress)
    names = ["public.a", "public.b"]
    capture.grown(names)
    for name, wish in progress.wishes().items():
        progress.advance(name, replace(wish, after=("1",)))
    capture.grown(names)
    wishes = progress.wishes()
    assert [wishes[name].after for name in names] == [None, None]
    assert [wishes[name].where for name in names] == ["", "id > 1"]
