"""What is left of a backfill, over chunks, failures and new snapshots."""

from dataclasses import replace

from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.progress import BackfillProgress, Elsewhere
from walstream.sources.postgres.backfill.stored_progress import StoredProgress
from walstream.state.migration import tables_apart
from walstream.testing import MemoryStore

THREE = BackfillProgress(99, ("public.a", "public.b", "public.c"))
KEYS = dict.fromkeys(THREE.tables, ("id",))


def test_a_table_that_is_wanted_and_one_that_is_given_up_are_known() -> None:
    record = THREE.wanting(["public.d"], anew=True).without("public.a", failed="it is")
    assert reread(record) == BackfillProgress(
        99,
        ("public.b", "public.c", "public.d"),
        ("public.d",),
        failed={"public.a": "it is"},
    )


def test_a_finished_table_is_not_read_again() -> None:
    record = THREE.without("public.b", rows=7).without("public.a", rows=2)
    assert record.tables == ("public.c",)
    assert record.rows == 9
    assert record.under(120, KEYS).tables == ("public.c",)


def test_a_table_that_is_captured_no_more_is_left_out() -> None:
    there = {"public.c": ("id",), "public.z": ("id",)}
    assert THREE.under(120, there) == BackfillProgress(120, ("public.c",))


def test_a_table_that_is_wanted_again_has_not_failed() -> None:
    record = THREE.without("public.a", failed="broken").wanting(
        ["public.a", "public.b"], anew=False
    )
    assert record.tables == ("public.b", "public.c", "public.a")
    assert not record.failed
    assert not record.replace


def test_readers_empty_a_table_once() -> None:
    record = THREE.wanting(["public.a"], anew=True)
    assert record.replace == ("public.a",)
    assert record.without("public.a", rows=1).replace == ()


def test_what_ran_elsewhere_is_known_until_it_is_fenced() -> None:
    record = replace(THREE, elsewhere=Elsewhere("7 2026-01-01", 12))
    for table in THREE.tables:
        record = record.without(table, rows=1)
    assert reread(record).elsewhere == Elsewhere("7 2026-01-01", 12)


def reread(record: BackfillProgress) -> BackfillProgress:
    """Write it and read it, as a start does that follows a crash."""
    positions = MemoryStore()
    StoredProgress(positions).store(record)
    assert stored_progress.read(positions) == record
    return record


def test_a_table_without_a_key_that_was_begun_is_emptied_under_the_next_snapshot() -> (
    None
):
    keys = {**KEYS, "public.b": ()}
    record = THREE.under(120, keys)
    assert record.replace == ()  # nothing was sent yet
    record = reread(record.beginning(keys))
    again = record.under(140, keys)
    assert again.replace == ("public.b",)
    assert reread(again).under(160, keys).replace == ("public.b",)
    done = again.without("public.b", rows=3).wanting(["public.b"], anew=False)
    assert done.under(180, keys).replace == ()  # all of it was delivered


def test_a_table_whose_key_became_another_is_emptied_under_the_next_snapshot() -> None:
    record = THREE.beginning(KEYS)
    keys = {**KEYS, "public.a": (), "public.b": ("tenant", "id")}
    assert record.under(120, keys).replace == ("public.a", "public.b")
    gained = THREE.beginning({"public.c": ()})
    assert gained.under(120, KEYS).replace == ("public.c",)


def test_a_table_that_was_given_up_amid_its_rows_is_emptied_when_it_is_asked_for() -> (
    None
):
    keys = dict.fromkeys(THREE.tables, ())
    record = reread(THREE.beginning(keys).without("public.a", failed="unreadable"))
    asked = record.wanting(["public.a"], anew=False)
    assert "public.a" in asked.under(120, keys).replace


def test_of_what_an_older_walstream_kept_all_may_have_begun() -> None:
    old = {"lsn": 99, "rows": 0, "tables": [*THREE.tables], "failed": {}}
    first = MemoryStore({"backfill": {**old, "replace": [], "others": []}})
    record = stored_progress.read(MemoryStore(tables_apart(first)))
    assert record is not None
    assert record.tables == THREE.tables
    # it kept nothing of what it had sent
    assert record.under(120, {**KEYS, "public.c": ()}).replace == ("public.c",)


def test_what_was_streamed_before_a_later_snapshot_is_emptied_where_it_has_no_key() -> (
    None
):
    keys = {**KEYS, "public.b": ()}
    record = reread(
        BackfillProgress(99, THREE.tables, begun=dict.fromkeys(THREE.tables))
    )
    assert record.under(99, keys).replace == ()  # the slot's own: nothing was streamed
    assert record.under(120, keys).replace == ("public.b",)


def test_a_part_is_read_under_each_snapshot_and_forgotten_when_it_is_there() -> None:
    record = THREE.without("public.a", rows=1).wanting(
        ["public.a"], anew=False, where="id > 5"
    )
    record = reread(record.beginning(KEYS)).under(120, KEYS)
    assert record.where == {"public.a": "id > 5"}
    again = record.wanting(["public.a", "public.b"], anew=False, where="id < 2")
    # of b all is wanted
    assert again.where == {"public.a": "(id > 5) OR (id < 2)"}
    assert reread(again).without("public.a", rows=3).where == {}
    failed = reread(again.without("public.a", failed="broken"))
    assert failed.where == again.where  # for the next try


def test_a_part_of_a_table_that_was_given_up_is_read_with_what_it_lacks() -> None:
    record = THREE.without("public.a", failed="broken")
    assert record.wanting(["public.a"], anew=False, where="id > 5").where == {}
    part = THREE.wanting(["public.d"], anew=False, where="id > 5")
    part = part.without("public.d", failed="broken")
    both = part.wanting(["public.d"], anew=False, where="id < 2").where
    assert both == {"public.d": "(id > 5) OR (id < 2)"}


def test_of_a_part_no_readers_empty_the_table() -> None:
    """The rows beside it would not come again."""
    record = THREE.wanting(["public.d"], anew=False, where="id > 5")
    keys = {**KEYS, "public.d": ("id",)}
    record = record.beginning(keys)
    later = record.under(120, {**keys, "public.b": ("n",), "public.d": ("n",)})
    assert later.replace == ("public.b",)
    assert "public.d" not in later.tables
    assert "another one" in later.failed["public.d"]
