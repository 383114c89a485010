r"""Nothing that drives a terminal is left: it is spelt out."""

import json

from walstream.telemetry.terminal import escape, escape_json, escape_lines, indented

DRIVING = "\x1b[31m\r\n\t\0\x07\x7f\x9b31m\u202e\u2066\u200b\u2028\ufeff\U000e0001"


def test_what_drives_a_terminal_is_spelt_out() -> None:
    shown = escape(f"a{DRIVING}z")
    assert shown.isprintable()
    assert shown.startswith(r"a\x1b[31m\r\n\t\x00\x07\x7f\x9b31m\u202e")


def test_printable_text_of_any_script_stays() -> None:
    assert escape("naïve 漢字 🙂 עברית") == "naïve 漢字 🙂 עברית"


def test_lines_stay_and_nothing_else() -> None:
    assert escape_lines("a\n\x1bb\x85\n") == "a\n\\x1bb\\x85\n"


def test_no_line_begins_like_one_of_ours() -> None:
    assert indented("a\n✓ run would start\n  hint\r") == (
        "a\n  ✓ run would start\n  hint\\r"
    )


def test_json_stays_the_same_json() -> None:
    document = json.dumps({"key": f"a{DRIVING}z"}, ensure_ascii=False)
    spelt = escape_json(document)
    assert spelt.isprintable()
    assert json.loads(spelt) == json.loads(document)
