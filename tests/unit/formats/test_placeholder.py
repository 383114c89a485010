"""A stand-in means its text: whole, in pieces, compared, written as JSON."""

import orjson
import pytest

from walstream.formats import placeholder
from walstream.formats.placeholder import StandIn, weight

TEXT = 'aä€😀"\\\n\x01' * 5


def of(text: str) -> StandIn:
    return StandIn(memoryview(text.encode()))


@pytest.mark.parametrize("piece", range(1, 12))
def test_pieces_and_their_json_make_the_whole(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(placeholder, "_PIECE", max(piece, 4))
    meant = of(TEXT)
    assert "".join(meant.pieces()) == meant.text() == TEXT
    assert b'"%b"' % b"".join(meant.json()) == orjson.dumps(TEXT)


@pytest.mark.parametrize("utf8", [b"ab\xff", b"\x80" * 9, "ä".encode()[:1]])
def test_what_is_no_utf8_is_refused(utf8: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        list(StandIn(memoryview(utf8)).pieces())


def test_it_is_compared_by_what_it_means() -> None:
    assert of("one") == of("one") == "one"
    assert of("one") != of("two")
    assert of("one") != "two"
    assert of("one") != None  # noqa: E711 - its own comparison


def test_it_is_written_as_itself_and_no_two_are_alike() -> None:
    one, other = of("x"), of("x")
    texts = orjson.loads(orjson.dumps([one, other]))
    assert len(set(texts)) == 2
    assert all(text.startswith("walstream:") for text in texts)


def test_a_row_weighs_what_its_texts_take() -> None:
    assert weight(["abc", None, of("äö")]) == 3 + 4
    assert weight(None) == 0
