"""What is left of a backfill, over chunks, failures and new snapshots."""

import json
from dataclasses import replace

from walstream.backfill.record import Elsewhere, Record

THREE = Record(99, ("public.a", "public.b", "public.c"))


def test_nothing_kept_is_no_backfill() -> None:
    assert Record.of(None) is None


def test_what_is_written_is_read() -> None:
    record = THREE.wanting(["public.d"], anew=True).without("public.a", failed="it is")
    assert Record.of(json.loads(json.dumps(record.document))) == Record(
        99,
        ("public.b", "public.c", "public.d"),
        ("public.d",),
        failed={"public.a": "it is"},
    )


def test_a_finished_table_is_not_read_again() -> None:
    record = THREE.without("public.b", rows=7).without("public.a", rows=2)
    assert record.tables == ("public.c",)
    assert record.rows == 9
    assert record.under(120, ["public.a", "public.b", "public.c"]).tables == (
        "public.c",
    )


def test_a_table_that_is_captured_no_more_is_left_out() -> None:
    assert THREE.under(120, ["public.c", "public.z"]) == Record(120, ("public.c",))


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
    read = Record.of(json.loads(json.dumps(record.document)))
    assert read == record
    assert record.elsewhere == Elsewhere("7 2026-01-01", 12)
