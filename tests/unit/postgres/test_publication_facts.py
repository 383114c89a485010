"""A publication as it was seen, and what is stored of it."""

import json
from dataclasses import replace

from walstream.postgres.publication_facts import Sighting, files_of
from walstream.telemetry.json_codec import document, dumps, read

SEEN = Sighting(
    oid=9,
    operations=frozenset({"insert", "delete"}),
    via_root=True,
    tables=frozenset({1, 2}),
    owner=10,
    generated="n",
    xmin=700,
    last=(3, 2),
    ways={1: frozenset({"row 50 700"}), 2: frozenset({"all", "schema 4 5"})},
    leaves={2: {20: "700", 21: "701"}},
    schemas=frozenset({"schema 4 5"}),
    unlogged=frozenset({7}),
    files={20: files_of(30, 31, ()), 21: files_of(32, 33, [[34, 35, 700]])},
)


def stored(seen: Sighting) -> Sighting:
    return read(Sighting, json.loads(dumps(seen)))


def test_what_is_stored_is_read_back_as_it_was() -> None:
    assert stored(SEEN) == SEEN
    assert stored(replace(SEEN, brought=frozenset({1}))).brought == {1}


def test_what_is_of_now_is_not_stored() -> None:
    now = replace(SEEN, place=(0, 1), places=frozenset({(0, 1)}))
    assert document(now) == document(SEEN)


def test_what_was_stored_without_marks_is_read() -> None:
    first_four = ("oid", "operations", "via_root", "tables")
    then = read(Sighting, {key: document(SEEN)[key] for key in first_four})
    assert then.tables == SEEN.tables
    assert then.xmin is None
