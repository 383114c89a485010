"""Which columns decide a table's keys, and from which LSN on."""

from dataclasses import replace

import pytest

from walstream.pipeline.row_key import KEYS, KeyHistory, KeySet
from walstream.testing import MemoryStore

FIRST = KeySet(0, primary_key=("id",))
SECOND = KeySet(100, primary_key=("code",))


def test_set_counts_from_its_lsn_on() -> None:
    history = KeyHistory([FIRST, SECOND])
    assert history.at(99) is FIRST
    assert history.at(100) is SECOND
    assert history.at(2**64 - 1) is SECOND


def test_history_without_sets_knows_no_keys() -> None:
    assert KeyHistory([]).at(5) == KeySet(0)


def test_transaction_below_all_sets_is_read_under_the_oldest() -> None:
    assert KeyHistory([SECOND]).at(5) is SECOND


def test_same_columns_are_no_change() -> None:
    history = KeyHistory([FIRST])
    assert not history.change(KeySet(100, primary_key=("id",)))
    assert list(history.boundaries()) == []


def test_other_columns_are_a_change_from_their_lsn() -> None:
    history = KeyHistory([FIRST])
    assert history.change(SECOND)
    assert list(history.boundaries()) == [100]
    assert history.change(KeySet(100, ("code",), ("org",)))
    assert history.at(100).partition_key == ("org",)


def test_columns_that_come_back_are_a_change_again() -> None:
    history = KeyHistory([FIRST, SECOND])
    assert history.change(KeySet(200, primary_key=("id",)))
    assert [history.at(lsn).primary_key for lsn in (50, 150, 250)] == [
        ("id",),
        ("code",),
        ("id",),
    ]


def test_sets_that_no_replay_needs_are_forgotten() -> None:
    history = KeyHistory([FIRST, SECOND, KeySet(200, ("x",))])
    history.forget_below(150)
    assert list(history.boundaries()) == [200]
    assert history.at(150) is SECOND


def test_it_says_from_where_nothing_is_forgotten() -> None:
    history = KeyHistory([FIRST, SECOND, KeySet(200, ("x",))])
    assert history.known_from == 0
    history.forget_below(150)
    assert history.known_from == 100


def stored(history: KeyHistory) -> KeyHistory:
    """Write it, and read it."""
    table = KEYS.of("public.t")
    return KeyHistory(table.read(MemoryStore(table.entry(history.stored))) or ())


def test_history_survives_being_stored() -> None:
    kept = KeySet(100, ("a", "b"), ("c",), ("a", "b", "c"), 7)
    history = KeyHistory([FIRST, kept])
    again = stored(history)
    assert again.stored == history.stored
    assert again.at(100) == kept


def test_a_history_of_an_earlier_version_is_read_by_its_lsns() -> None:
    kept = {"from_lsn": 0, "primary_key": ["id"], "partition_key": []}
    table = KEYS.of("public.t")
    history = KeyHistory(table.read(MemoryStore({table.name: [kept]})) or ())
    assert history.change(KeySet(100, ("code",), (), ("id", "code"), 7))
    assert history.primary_key(50, 7, ("id", "code")) == ("id",)
    assert history.primary_key(100, 7, ("id", "code")) == ("code",)
    assert history.primary_key(50, 7, ("x", "code")) == ("code",)


OID = 7


def known(lsn: int, columns: str, key: str, oid: int = OID) -> KeySet:
    """Keep columns of one letter each; *: not all of them are sent."""
    kept = KeySet(lsn, tuple(key), (), tuple(columns.rstrip("*")), oid)
    return replace(kept, partial=columns.endswith("*"))


@pytest.mark.parametrize(
    ("sets", "lsn", "columns", "key"),
    [
        pytest.param(["iv i", "uv u"], 50, "uv", "u", id="renamed, not yet looked at"),
        pytest.param(["iv i", "uv u"], 50, "iv", "i", id="not yet renamed"),
        pytest.param(["ic i", "ci c"], 50, "ci", "c", id="two swapped names"),
        pytest.param(["iv i", "ivu u"], 50, "ivu", "u", id="another column is the key"),
        pytest.param(["iv i", "v v"], 50, "v", "v", id="its column went"),
        pytest.param(["iv i", "v "], 50, "v", "", id="it went with its column"),
        pytest.param(["v ", "vi i"], 50, "vi", "i", id="gained with its column"),
        pytest.param(["v ", "vic i"], 50, "vi", "i", id="gained, and a column since"),
        pytest.param(["iv i", "iv v"], 50, "iv", "i", id="replaced: by LSN"),
        pytest.param(["iv i", "iv v"], 100, "iv", "v", id="replaced: from there on"),
        pytest.param(["iv i"], 50, "ivc i", "i", id="a column that came and went"),
        pytest.param(["igv i"], 50, "iv", "i", id="generated columns are not sent"),
        pytest.param(["iv* i"], 50, "v", "", id="the key is not in the column list"),
        pytest.param(["iv i"], 50, "v", None, id="the key's column was away"),
        pytest.param(["iv i", "iv* i"], 50, "v", "", id="a column list since"),
        pytest.param(["iv i", "vg* g"], 50, "v", "", id="a generated key since"),
        pytest.param(["iv i", "kv k"], 50, "uv", None, id="renamed twice"),
        pytest.param(["ic i", "ci c"], 50, "tc", None, id="in the midst of a swap"),
        pytest.param(["iv i", "uw u"], 50, "uv", "u", id="renamed, then another"),
    ],
)
def test_the_primary_key_is_that_of_the_rows_columns(
    sets: list[str], lsn: int, columns: str, key: str | None
) -> None:
    kept = [
        known(number * 100, one.split(" ")[0], one.split(" ")[1])
        for number, one in enumerate(sets)
    ]
    found = KeyHistory(kept).primary_key(
        lsn, OID, tuple(columns.split(" ", maxsplit=1)[0])
    )
    assert found == (None if key is None else tuple(key))


@pytest.mark.parametrize(
    ("later", "columns", "key"),
    [
        pytest.param("v2 j3", "v", (), id="dropped, and another one since"),
        pytest.param("v2 j3", "vw", None, id="another column then"),
        pytest.param("i1 v2", "v", None, id="renamed to and fro"),
        pytest.param("u1 v2", "v", None, id="renamed"),
        pytest.param("v2 j3 g0", "v", (), id="generated columns do not count"),
    ],
)
def test_a_row_behind_a_dropped_key_has_none(
    later: str, columns: str, key: tuple[str, ...] | None
) -> None:
    first = replace(known(0, "iv", "i"), numbers=(1, 2))
    names = [one[0] for one in later.split()]
    numbers = tuple(int(one[1]) for one in later.split())
    last = replace(
        known(100, "".join(names), "j" if "j" in names else names[0]), numbers=numbers
    )
    history = KeyHistory([first, last])
    assert history.primary_key(50, OID, tuple(columns)) == key


def test_what_a_table_of_the_same_name_had_is_not_forgotten_with_it() -> None:
    history = KeyHistory(
        [known(0, "iv", "i", 7), known(100, "iv", "v", 8), known(200, "iv", "i", 8)]
    )
    history.forget_below(150)
    assert history.known_from == 100
    assert history.primary_key(160, 7, ("i", "v")) == ("i",)
    assert history.primary_key(160, 8, ("i", "v")) == ("v",)
    assert history.primary_key(250, 8, ("i", "v")) == ("i",)


def test_tables_of_one_name_are_told_by_their_oid() -> None:
    history = KeyHistory([known(0, "ic", "i", oid=7), known(100, "ic", "c", oid=8)])
    assert history.primary_key(50, 8, ("i", "c")) == ("c",)
    assert history.primary_key(150, 7, ("i", "c")) == ("i",)
    assert history.primary_key(150, 9, ("i", "c")) is None


def test_a_table_that_is_gone_has_the_key_of_its_name_and_columns() -> None:
    history = KeyHistory([known(0, "ic", "c", oid=8)])
    assert history.meet_gone(known(100, "ic", "", oid=7))
    assert history.meet_gone(known(100, "xy", "", oid=6))
    assert not history.meet_gone(known(200, "ic", "", oid=7))
    assert history.primary_key(50, 7, ("i", "c")) == ("c",)
    assert history.primary_key(50, 6, ("x", "y")) == ()


def test_columns_that_came_and_went_are_read_alike_when_they_come_again() -> None:
    history = KeyHistory([known(0, "iv", "i")])
    seen = known(100, "ivc", "")
    assert history.settle((50, 0), seen)
    before = history.primary_key(50, OID, ("i", "v", "c"))
    assert history.change(known(200, "ivc", "c"))
    assert history.primary_key(50, OID, ("i", "v", "c")) == before == ("i",)
    assert history.primary_key(200, OID, ("i", "v", "c")) == ("c",)
    assert not history.settle((50, 0), seen)


def test_of_keys_that_a_transaction_tells_each_counts_from_its_place() -> None:
    columns = ("id", "code")
    history = KeyHistory([KeySet(0, ("id",), columns=columns, oid=7)])
    told = [((100, 2), "code"), ((100, 4), "id"), ((100, 6), "code"), ((150, 0), "id")]
    for place, key in told:
        found = KeySet(900, (key,), columns=columns, oid=7)
        assert history.tell(place, 7, columns, (key,), found)
    again = stored(history)
    for (lsn, seq_id), key in [*told, ((100, 1), "id"), ((100, 7), "code")]:
        assert again.primary_key(lsn, 7, columns, seq_id) == (key,)
    for place, key in told:
        assert again.tells(place, 7, columns, (key,))
    assert list(again.boundaries()) == [101, 101, 101, 150]


def test_of_equal_sets_at_one_place_the_last_one_counts() -> None:
    columns = ("id", "code")
    one, other = (KeySet(100, (key,), columns=columns, oid=7) for key in columns)
    history = KeyHistory([other, one, other])
    assert history.tell((150, 0), 7, columns, ("id",), one)
    assert history.primary_key(160, 7, columns) == ("id",)
    assert list(history.boundaries()) == [100, 100, 150]
