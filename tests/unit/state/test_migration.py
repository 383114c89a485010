"""What a state folder of the first format becomes."""

from typing import Any, cast

from walstream.state.migration import tables_apart
from walstream.testing import MemoryStore


def migrated(**documents: object) -> dict[str, Any]:
    return cast("dict[str, Any]", tables_apart(MemoryStore(documents)))


BACKFILL = {
    "lsn": 7,
    "rows": {"public.a": 3},
    "elsewhere": None,
    "tables": ["public.a", "public.b"],
    "replace": ["public.b"],
    "others": ["public.a"],
    "failed": {"public.c": "no right"},
    "begun": {"public.a": [0], "public.d": []},
}


def test_each_table_of_a_backfill_has_a_document_of_its_own() -> None:
    made = migrated(backfill=BACKFILL)
    rows = {"public.a": 3}
    assert made["backfill"] == {"lsn": 7, "rows": rows, "elsewhere": None}
    by_name = {name.split("/")[1]: one for name, one in made.items() if "/" in name}
    assert [*by_name] == [f"public.{name}" for name in "abcd"]
    assert [one["place"] for one in by_name.values()] == [0, 1, 2, 3]
    assert [one["left"] for one in by_name.values()] == [True, True, False, False]
    assert [one["replace"] for one in by_name.values()] == [False, True, False, False]
    assert [one["other"] for one in by_name.values()] == [True, False, False, False]
    assert [one["failed"] for one in by_name.values()] == ["", "", "no right", ""]
    assert [one["begun"] for one in by_name.values()] == [True, False, False, True]
    assert [one["key"] for one in by_name.values()] == [[0], None, None, []]


def test_where_nothing_was_kept_of_what_had_begun_all_of_it_may_have() -> None:
    old = {name: value for name, value in BACKFILL.items() if name != "begun"}
    made = migrated(backfill=old)
    begun = {name: one["begun"] for name, one in made.items() if "/" in name}
    assert begun == {
        "backfill/public.a": True,
        "backfill/public.b": True,
        "backfill/public.c": False,
    }


def test_each_wish_beside_the_stream_has_a_document_of_its_own() -> None:
    old = {"mark": 5, "tables": {"public.x": {"after": ["9"]}, "public.y": {}}}
    assert migrated(beside=old) == {
        "beside": {"mark": 5},
        "beside/public.x": {"after": ["9"], "place": 0},
        "beside/public.y": {"place": 1},
    }


def test_an_empty_state_stays_one() -> None:
    assert migrated() == {}
