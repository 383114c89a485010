"""`walstream tail` is told where to read: by a configuration, or by brokers alone."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from walstream.cli.main import app
from walstream.errors import ConfigError


def refusal(*arguments: str) -> ConfigError:
    error = CliRunner().invoke(app, ["tail", *arguments]).exception
    assert isinstance(error, ConfigError)
    return error


@pytest.mark.parametrize("other", [("-c", "x.toml"), ("--sink", "x")])
def test_brokers_take_the_place_of_a_configuration(other: tuple[str, ...]) -> None:
    assert "leave out" in refusal("--brokers", "h:1", *other).hint


def test_without_a_configuration_brokers_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--brokers HOST:PORT" in refusal("t").hint


def test_schema_needs_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["tail", "--json-schema"])
    assert json.loads(shown.stdout)["properties"]["lsn"]


def test_limit_of_nothing_is_refused() -> None:
    assert CliRunner().invoke(app, ["tail", "-n", "0"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--from", "soon"), "'soon' is not a time"),
        (("--from", "-2h", "--from-beginning"), "exclude each other"),
        (("-f", "%k", "--json"), "--format"),
        (("-f", "%y"), "%y"),
    ],
)
def test_what_contradicts_itself_is_refused(
    arguments: tuple[str, ...], named: str
) -> None:
    assert named in str(refusal("t", "--brokers", "h:1", *arguments).args[0])
