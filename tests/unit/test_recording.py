"""The recording of the demo shows what a terminal showed, and needs no script."""

import xml.etree.ElementTree as ET

from tests.support.project.recording import (
    RECORDING,
    Output,
    Row,
    Screen,
    draw,
    frames,
)

_SVG = "{http://www.w3.org/2000/svg}"


def _text(rows: list[tuple[tuple[str, str], ...]]) -> list[str]:
    return ["".join(words for words, _ in row) for row in rows]


def test_a_line_that_is_erased_is_written_again_in_place() -> None:
    screen = Screen()
    screen.write("first\r\n\x1b[32m*\x1b[0m waiting\r\n\x1b[1A\x1b[2Kdone\r\n")
    assert _text(screen.rows(9)) == ["first", "done"]
    assert _text(screen.rows(1)) == ["done"]


def test_a_colour_ends_where_the_terminal_ends_it() -> None:
    screen = Screen()
    screen.write("\x1b[1;32m0\x1b[0m missing")
    assert screen.rows(1) == [(("0", "b g"), (" missing", ""))]


def test_a_spinner_alone_takes_a_second_however_long_it_turns() -> None:
    spins = [Output(n / 2, f"\r\x1b[2K{'⠋⠙'[n % 2]} Kafka") for n in range(20)]
    shown = frames([*spins, Output(10.0, "\r\x1b[2Kready"), Output(10.1, " now")])
    assert [lasts_s for lasts_s, _ in shown] == [1.0, 8.0]
    assert _text(shown[-1][1]) == ["ready now"]


def test_a_line_is_drawn_once_however_many_frames_have_it() -> None:
    rows: list[Row] = [(("<same>", "g"),)]
    drawn = ET.fromstring(draw([(1.0, rows), (1.0, [*rows, ()]), (8.0, rows)]))  # noqa: S314 - our own
    assert [element.text for element in drawn.iter(f"{_SVG}tspan")] == ["<same>"]
    assert len(list(drawn.iter(f"{_SVG}use"))) == 3


def test_the_picture_in_readme_is_a_whole_run_without_loss_and_without_script() -> None:
    drawn = ET.fromstring(RECORDING.read_text("utf-8"))  # noqa: S314 - our own
    texts = ["".join(element.itertext()) for element in drawn.iter(f"{_SVG}text")]
    assert any(text.startswith("Missing") and "0" in text for text in texts)
    assert "Nothing is missing." in texts
    tags = {element.tag.removeprefix(_SVG) for element in drawn.iter()}
    assert tags <= {"svg", "style", "defs", "text", "tspan", "rect", "g", "use"}
