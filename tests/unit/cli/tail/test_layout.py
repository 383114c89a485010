"""Lines stay within their width, and lose nothing but spaces."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from walstream.cli.tail.layout import Piece, lay_out, plain


def laid_out(width: int | None, *texts: str) -> list[str]:
    return [plain(line) for line in lay_out([[Piece(one)] for one in texts], width)]


def test_items_share_a_line_while_they_fit() -> None:
    assert laid_out(20, "a" * 9, "b" * 10, "c") == [
        "aaaaaaaaa bbbbbbbbbb",
        "    c",
    ]


def test_without_a_width_all_is_one_line() -> None:
    assert laid_out(None, "a" * 500, "b") == ["a" * 500 + " b"]


def test_long_item_is_broken_at_a_space_if_one_is_near() -> None:
    assert laid_out(20, "one two three four five six") == [
        "one two three four",
        "    five six",
    ]


def test_long_word_is_broken_anywhere() -> None:
    assert laid_out(20, "a", "b" * 40) == [
        "a",
        "    " + "b" * 16,
        "    " + "b" * 16,
        "    " + "b" * 8,
    ]


def test_wide_characters_count_twice() -> None:
    assert laid_out(20, "漢" * 12) == ["漢" * 10, "    " + "漢" * 2]


def test_styles_stay_with_their_characters() -> None:
    item = [Piece("a" * 15, "red"), Piece("b" * 15, "green")]
    assert lay_out([item], 20) == [
        [Piece("a" * 15, "red"), Piece("b" * 5, "green")],
        [Piece("    "), Piece("b" * 10, "green")],
    ]


def test_a_great_value_takes_no_great_time() -> None:
    lines = laid_out(80, "x" * 2_000_000)
    assert sum(map(len, lines)) - 4 * (len(lines) - 1) == 2_000_000


@given(
    st.lists(st.lists(st.text("ab 漢", max_size=60)), max_size=8),
    st.integers(20, 60),
)
def test_no_line_is_too_wide_and_nothing_is_lost(
    items: list[list[str]], width: int
) -> None:
    lines = lay_out([[Piece(text) for text in item] for item in items], width)
    assert all(cell_len(plain(line)) <= width for line in lines)
    shown = "".join(plain(line) for line in lines).replace(" ", "")
    assert shown == "".join("".join(item) for item in items).replace(" ", "")
