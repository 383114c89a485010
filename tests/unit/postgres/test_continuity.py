"""What was published all the while, by rows of the catalog: without a server."""

from dataclasses import replace

import pytest

from walstream.postgres.continuity import compare, with_own
from walstream.postgres.publication_facts import Files, Sighting, files_of
from walstream.telemetry.json_codec import document, read

EVERY = frozenset({"insert", "update", "delete", "truncate"})
SEEN = Sighting(
    oid=9,
    operations=EVERY,
    via_root=True,
    tables=frozenset({1, 2}),
    owner=10,
    generated="n",
    xmin=700,
    last=(0, 2),
    ways={1: frozenset({"row 50 700"}), 2: frozenset({"row 51 700"})},
    leaves={2: {20: "700", 21: "700"}},
    files={20: (30, 31, ()), 21: (32, 33, ((34, 35, 700),))},
    place=(0, 1),
    places=frozenset({(0, 1), (0, 2)}),
)


def ways(**changed: set[str]) -> Sighting:
    """Give the publication with the ways of tables `t1`, `t2`, …; none: not in it."""
    every = {f"t{oid}": set(found) for oid, found in SEEN.ways.items()} | changed
    made = {int(name[1:]): frozenset(found) for name, found in every.items() if found}
    return replace(SEEN, ways=made)


def missed(then: Sighting, now: Sighting, *left: str) -> set[int]:
    return set(compare({"p": then}, {"p": now}, left).missed)


def test_what_is_as_it_was_is_no_difference() -> None:
    found = compare({"p": SEEN}, {"p": SEEN}, ["7"])
    assert found.harmless
    assert not found.came
    assert not found.widened
    assert found.left == {"7"}


def files(text: str) -> Files:
    """Read "file toast sequence…"; !: that was altered."""
    file, toast, *sequences = text.split()
    owned = [
        (number, int(one.rstrip("!")), 700 + one.endswith("!"))
        for number, one in enumerate(sequences)
    ]
    return files_of(int(file), int(toast), owned)


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        pytest.param("1 2 3", "1 2 3", "", id="as it was"),
        pytest.param("1 2 3 4", "5 6 7 8", "missed", id="unlogged and back"),
        pytest.param("1 2 3", "5 2 7", "", id="truncated, restarted"),
        pytest.param("1 2 3 4", "5 6 3 8", "", id="a sequence restarted"),
        pytest.param("1 2 3", "5 6 7!", "doubtful", id="its sequence altered"),
        pytest.param("1 2 3 4", "5 6 7", "doubtful", id="a sequence dropped"),
        pytest.param("1 2", "5 2", "", id="vacuumed"),
        pytest.param("1 2", "5 6", "doubtful", id="no sequence"),
        pytest.param("1 0 3", "5 0 7", "doubtful", id="nothing is toasted"),
        pytest.param("1 0", "5 0", "doubtful", id="neither"),
        pytest.param("1 0 3", "5 6 7", "doubtful", id="toasted since"),
    ],
)
@pytest.mark.parametrize("way", ["all", "schema 5 600 700", "row 50 700"])
def test_a_table_that_was_unlogged_for_a_while_is_told_by_its_files(
    before: str, now: str, found: str, way: str
) -> None:
    then = replace(
        SEEN, ways={1: frozenset({way})}, leaves={}, files={1: files(before)}
    )
    difference = compare({"p": then}, {"p": replace(then, files={1: files(now)})}, ())
    wanted = "" if way.startswith("row") else found
    assert set(difference.missed) == ({1} if wanted == "missed" else set())
    assert difference.doubtful == ({1} if wanted == "doubtful" else set())


def test_a_partition_that_was_unlogged_is_told_of_its_root() -> None:
    then = replace(SEEN, files={20: files("1 2")})
    found = compare({"p": then}, {"p": replace(then, files={20: files("3 4")})}, ())
    assert found.doubtful == {2}


@pytest.mark.parametrize("via_root", [False, True])
def test_a_partition_that_is_detached_has_rows_that_went_out_as_its_roots(
    via_root: bool,
) -> None:
    then = replace(SEEN, via_root=via_root)
    alone = {**SEEN.ways, 20: frozenset({"all"}), 22: frozenset({"all"})}
    now = replace(then, ways=alone, leaves={2: {21: "700"}})
    assert compare({"p": then}, {"p": now}, ()).came == ({20} if via_root else set())
    now = replace(now, brought=frozenset({1, 22}))
    assert 22 in compare({"p": then}, {"p": now}, ()).came


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"oid": 10}, "dropped and created again"),
        ({"via_root": False}, "publish_via_partition_root"),
        ({"operations": frozenset({"insert"})}, "no longer publishes"),
    ],
)
def test_a_publication_that_is_another_is_lost(
    change: dict[str, object], said: str
) -> None:
    assert said in compare({"p": SEEN}, {"p": replace(SEEN, **change)}, ()).lost  # type: ignore[arg-type]


def test_a_publication_that_is_gone_is_lost() -> None:
    assert "was dropped" in compare({"p": SEEN}, {}, ()).lost


def test_a_row_that_was_made_again_names_its_table() -> None:
    assert missed(SEEN, ways(t1={"row 60 800"})) == {1}
    assert missed(SEEN, ways(t1={"row 50 700 part"})) == {1}


def test_one_way_that_stayed_is_enough_unless_it_is_filtered() -> None:
    then = ways(t1={"row 50 700", "schema 8 700 650"})
    assert missed(then, ways(t1={"schema 8 700 650"})) == set()
    assert missed(then, ways(t1={"row 60 800", "schema 8 700 650"})) == set()
    filtered = ways(t1={"row 50 700", "row 40 700 part"})
    assert missed(filtered, ways(t1={"row 60 800", "row 40 700 part"})) == {1}
    part = ways(t1={"row 40 700 part"})
    assert missed(part, part) == set()
    assert missed(part, ways(t1={"row 40 700 part", "row 60 800"})) == {1}


AT_ONCE = {"place": (0, 3), "places": frozenset({(0, 2), (0, 3)})}


@pytest.mark.parametrize(
    ("place", "places"),
    [
        ((0, 4), {(0, 2), (0, 4)}),  # a line was left behind
        ((0, 1), {(0, 1), (0, 2)}),  # one was used again
        ((1, 1), {(0, 2), (1, 1)}),  # another page
    ],
)
def test_another_owner_hides_no_change_that_was_undone(
    place: tuple[int, int], places: set[tuple[int, int]]
) -> None:
    now = replace(SEEN, xmin=702, owner=11, place=place, places=frozenset(places))
    assert missed(SEEN, now) == {1, 2}


@pytest.mark.parametrize(
    ("then", "now", "tables"),
    [
        ({}, {}, {1, 2}),  # a line may have been used again: places alone tell nothing
        ({}, {"owner": 11}, set()),
        ({"owner": None}, {"owner": 11}, {1, 2}),  # nobody had asked
        ({"operations": frozenset({"insert"})}, {}, set()),
        ({}, {"generated": "s"}, set()),
        ({"generated": "s"}, {"generated": "n"}, {1, 2}),
        ({"generated": "s"}, {"generated": "n", "owner": 11}, {1, 2}),
        ({"generated": None}, {"generated": "n"}, {1, 2}),  # the server was upgraded
    ],
)
def test_an_update_of_a_publications_row_has_to_be_explained(
    then: dict[str, object], now: dict[str, object], tables: set[int]
) -> None:
    was = replace(SEEN, **then)  # type: ignore[arg-type]
    made = replace(SEEN, **{**AT_ONCE, "xmin": 702, **now})  # type: ignore[arg-type]
    assert missed(was, made) == tables


def test_what_a_walstream_kept_that_asked_for_no_owner_is_read() -> None:
    stored = document(SEEN)
    del stored["owner"], stored["generated"]
    then = read(Sighting, stored)
    assert (then.owner, then.generated) == (None, None)
    assert compare({"p": then}, {"p": SEEN}, ()).harmless


def test_each_operation_is_followed_by_itself() -> None:
    inserts = Sighting(10, frozenset({"insert"}), via_root=True, xmin=700)
    both = {"p": SEEN, "q": replace(inserts, ways={1: frozenset({"row 70 700"})})}
    moved = {"p": ways(t1=set()), "q": both["q"]}
    found = compare(both, moved, ())
    assert set(found.missed) == {1}
    assert "update" in found.missed[1]
    # and the other way around, updates and deletes come from now on
    assert compare(moved, both, ()).widened == {1}
    assert compare(moved, both, ()).missed == {}


def test_a_table_that_left_is_known_when_it_comes_back() -> None:
    gone = compare({"p": SEEN}, {"p": ways(t1=set())}, ())
    assert gone.gone == {1}
    assert gone.left == {"1"}
    back = compare({"p": ways(t1=set())}, {"p": ways(t1={"row 60 800"})}, gone.left)
    assert (set(back.missed), back.left) == ({1}, frozenset())
    fresh = compare({"p": SEEN}, {"p": ways(t3={"row 60 800"})}, ())
    assert (fresh.came, fresh.missed) == ({3}, {})


def test_a_partition_that_was_not_its_roots_names_the_root() -> None:
    again = replace(SEEN, leaves={2: {20: "800", 21: "700"}})
    assert missed(SEEN, again) == {2}
    less = replace(SEEN, leaves={2: {21: "700"}})
    gone = compare({"p": SEEN}, {"p": less}, ())
    assert gone.harmless
    assert gone.left == {"2/20"}
    assert missed(less, again, *gone.left) == {2}
    more = replace(SEEN, leaves={2: {20: "700", 21: "700", 22: "800"}})
    assert missed(SEEN, more) == set()


def test_a_table_that_became_a_partition_is_not_gone() -> None:
    attached = replace(ways(t1=set()), leaves={2: {1: "800", 20: "700", 21: "700"}})
    assert compare({"p": SEEN}, {"p": attached}, ()).harmless


def test_a_table_that_is_unlogged_now_is_missed() -> None:
    assert missed(SEEN, replace(ways(t1=set()), unlogged=frozenset({1}))) == {1}


def test_the_state_of_an_older_walstream_tells_its_tables_alone() -> None:
    stored = {key: document(SEEN)[key] for key in ("oid", "operations", "via_root")}
    then = read(Sighting, {**stored, "tables": [1, 7]})
    found = compare({"p": then}, {"p": SEEN}, ())
    assert (found.came, found.gone, found.missed) == ({2}, {7}, {})


def test_our_own_change_hides_no_other() -> None:
    now = ways(t1={"row 60 800"}, t2={"row 61 801"}, t3={"row 62 800"})
    expected = with_own({"p": SEEN}, {"p": now}, {"p": {1, 3}})
    assert set(compare(expected, {"p": now}, ()).missed) == {2}
