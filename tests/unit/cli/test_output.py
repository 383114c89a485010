"""What the verbs print fits 100 columns, is plain in a pipe, and can be copied."""

import io

import pytest
from rich.console import Console

from walstream.cli.output import (
    duration,
    print_findings,
    print_wrapped,
    size,
    table,
)
from walstream.errors import Repair
from walstream.finding import Finding, Severity, warning

LONG = "REPLICA IDENTITY FULL " * 12


def printed(finding: Finding, *, colour: bool = False) -> str:
    file = io.StringIO()
    out = Console(file=file, width=100, force_terminal=colour, highlight=False)
    print_findings(out, [finding], lambda text: f"{text} -c /etc/w.toml")
    return file.getvalue()


def test_prose_is_wrapped_and_commands_are_not() -> None:
    sql = f"ALTER TABLE t {LONG};"
    text = printed(warning("x", "table t", LONG, LONG, Repair(sql=sql)))
    assert f"    SQL> {sql}\n" in text
    assert all(len(line) <= 100 for line in text.splitlines() if "SQL>" not in line)


def test_the_same_is_not_said_twice() -> None:
    cure = "correct user or password"
    text = printed(warning("x", "server", "what", cure, Repair(then=cure)))
    assert text.count(cure) == 1


def test_a_command_is_completed_by_the_file() -> None:
    repair = Repair(command="walstream positions reset app", then="walstream run")
    text = printed(warning("x", "slot", "what", "why", repair))
    assert "    $ walstream positions reset app -c /etc/w.toml\n" in text
    assert "    then: walstream run\n" in text


def test_square_brackets_are_no_markup() -> None:
    assert "[red]x[/red]" in printed(warning("x", "s", "[red]x[/red]", "[b]"))


def test_colours_are_for_terminals() -> None:
    finding = Finding("x", "s", "what", "why", Severity.STOP)
    assert "\x1b[" in printed(finding, colour=True)
    assert "\x1b[" not in printed(finding)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "?"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes(number: int | None, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "?"), (0.24, "0.2 s"), (14.2, "14 s"), (90, "1.5 min"), (172800, "2.0 d")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_a_table_has_no_frame() -> None:
    file = io.StringIO()
    made = table("name", "held", right=["held"])
    made.add_row("walstream", "1 B")
    Console(file=file, width=100).print(made)
    assert [line.split() for line in file.getvalue().splitlines()] == [
        ["name", "held"],
        ["walstream", "1", "B"],
    ]


def test_prose_is_wrapped_between_words_under_its_beginning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_wrapped("  " + "[b]word[/b] " * 20)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("  [b]word[/b]") for line in lines)
    assert all(len(line) <= 100 and line.endswith("[/b]") for line in lines)
