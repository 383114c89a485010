"""A process collects rarely, and what it has loaded never again."""

import gc
from collections.abc import Iterator

import pytest

from walstream.telemetry import garbage


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_many_objects_are_created_before_a_collection() -> None:
    garbage.collect_rarely()
    gc.collect()
    before = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(10_000)]
    assert gc.get_stats()[0]["collections"] == before
    kept += [[number] for number in range(30_000)]
    assert gc.get_stats()[0]["collections"] > before


def test_what_exists_is_looked_at_no_more() -> None:
    before = gc.get_freeze_count()
    garbage.keep_all()
    assert gc.get_freeze_count() > before
    gc.collect()
    assert gc.get_freeze_count() > before
