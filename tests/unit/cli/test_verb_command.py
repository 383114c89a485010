"""Help shows no types, fits 80 columns, and an old flag works with a notice."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.cli.test_main import COMMANDS, VERBS
from walstream.cli.main import app
from walstream.cli.verb_command import reflow, renamed
from walstream.errors import ConfigError

_NARROW = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"}


def help_of(*words: str) -> str:
    shown = CliRunner().invoke(app, [*words, "--help"], env=_NARROW)
    assert shown.exit_code == 0
    return shown.output


@pytest.mark.parametrize("path", [(), *VERBS], ids=" ".join)
def test_no_type_is_shown_and_no_dots_are_doubled(path: tuple[str, ...]) -> None:
    shown = help_of(*path)
    for type_name in ("<bool>", "<int", "<str>", "<float", "list[", "...}..."):
        assert type_name not in shown


def test_prose_is_wrapped_for_the_terminal() -> None:
    assert reflow("Do it.\n\nMore of\nthat.\n") == "Do it.\n\nMore of that."
    assert reflow(None) is None


def test_verbs_are_listed_under_headings() -> None:
    shown = help_of()
    assert shown.index(" Start ") < shown.index(" Operate ") < shown.index(" Repair ")
    assert " Commands " not in shown


@pytest.mark.parametrize("verb", ["run", "check", "status"])
def test_exit_codes_are_in_the_help(verb: str) -> None:
    assert "Exit codes: 0 " in help_of(verb)


@pytest.mark.parametrize("words", [["slots"], ["positions", "show"], ["config"]])
def test_the_old_name_of_a_flag_works_and_names_the_new_one(words: list[str]) -> None:
    old = CliRunner().invoke(app, [*words, "--schema"])
    new = CliRunner().invoke(app, [*words, "--json-schema"])
    assert json.loads(old.stdout) == json.loads(new.stdout)
    assert "--schema is deprecated: use --json-schema" in old.stderr
    assert new.stderr == ""
    assert "--schema " not in help_of(*words)


_EMPTY = [
    (["backfill", "public.t", "--where", ""], "--where"),
    (["backfill", "public.t", "--where="], "--where"),
    (["backfill", "public.t", "--source", ""], "--source"),
    (["backfill", "public.t", ""], "TABLE"),
    (["run", "--until-lsn", ""], "--until-lsn"),
    (["run", "-c", ""], "--config"),
    (["init", "--dsn", "postgresql://h/d", "--brokers", ""], "--brokers"),
    (["init", "--tables", "a.b", "--tables", ""], "--tables"),
    (["positions", "reset", ""], "SOURCE"),
    (["slots", "--dsn", "", "drop", "s"], "--dsn"),
    (["slots", "drop", "s", "--dsn="], "--dsn"),
]


@pytest.mark.parametrize(("words", "name"), _EMPTY)
def test_an_empty_value_is_refused_by_its_name(words: list[str], name: str) -> None:
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception).splitlines() == [
        f"{name} is empty",
        "  give it a value, or leave it out",
    ]


def test_the_key_of_records_may_be_empty(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.toml")
    done = CliRunner().invoke(app, ["tail", "t", "--key", "", "-c", missing])
    assert isinstance(done.exception, ConfigError)
    assert missing in str(done.exception)


def test_an_empty_variable_and_a_word_that_ends_like_one_are_no_empty_value() -> None:
    words = ["slots", "-c", "/nowhere="]
    done = CliRunner().invoke(app, words, env={"WALSTREAM_DSN": ""})
    assert isinstance(done.exception, ConfigError)
    assert "/nowhere=" in str(done.exception)


def test_a_flag_of_that_name_that_means_something_else_stays() -> None:
    init = COMMANDS.commands["init"]  # type: ignore[attr-defined]
    assert renamed(init, ["--schema", "shop"]) == ["--schema", "shop"]
    slots = COMMANDS.commands["slots"]  # type: ignore[attr-defined]
    assert renamed(slots, ["--", "--schema"]) == ["--", "--schema"]


@pytest.mark.parametrize("words", [["version"], ["-V"]])
def test_the_version_has_several_spellings(words: list[str]) -> None:
    expected = CliRunner().invoke(app, ["--version"]).output
    assert CliRunner().invoke(app, words).output == expected
    assert expected.startswith("walstream ")


def test_help_is_a_word_too() -> None:
    assert CliRunner().invoke(app, ["help"], env=_NARROW).output == help_of()
    of_slots = CliRunner().invoke(app, ["help", "slots", "drop"], env=_NARROW).output
    assert of_slots == help_of("slots", "drop")
