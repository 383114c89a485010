"""What is kept beside an offset comes back as it was; what is not ours says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.sources.kafka.offset_metadata import NOTHING_NOTED, OffsetMetadata, read

_TEXTS = st.text(max_size=60)


@given(_TEXTS, _TEXTS, st.none() | st.tuples(_TEXTS, _TEXTS), _TEXTS)
def test_a_note_comes_back(
    topic: str, source: str, table: tuple[str, str] | None, replay: str
) -> None:
    note = OffsetMetadata(topic, source, table, replay)
    assert read(note.written()) == note


def test_a_name_that_no_server_gives_is_left_out() -> None:
    written = OffsetMetadata("id", "s", ("public", "x" * 5000), "a").written()
    assert len(written) < 4096
    assert read(written) == OffsetMetadata("id", replay="a")


@pytest.mark.parametrize(("length", "whole"), [(2000, True), (2001, False)])
def test_a_note_may_be_half_as_long_as_brokers_take(
    length: int, *, whole: bool
) -> None:
    frame = len(OffsetMetadata("id", "").written())
    note = OffsetMetadata("id", "s" * (length - frame))
    assert read(note.written()) == (note if whole else OffsetMetadata("id"))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "somebody else's",
        "[]",
        '{"topic": 1}',
        '{"replay": 1}',
        '{"table": "x"}',
        '{"table": [1, 2]}',
        '{"table": [1, "b"]}',
        '{"table": ["a", null]}',
        '{"table": {"a": 1, "b": 2, "c": 3}}',
        "[" * 4096,  # the longest that a broker keeps
    ],
)
def test_what_is_not_ours_says_nothing(text: str | None) -> None:
    assert read(text) == NOTHING_NOTED
