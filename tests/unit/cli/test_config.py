"""`walstream config`: prints, masks, and fails with the error's own exit code."""

import json
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from walstream.cli.config import config

TEXT = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql password=cAnArY"
sinks = ["log"]
[sinks.log]
kind = "log"
"""


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command("config")(config)
    return app


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "walstream.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("option", ["-c", "--config"])
def test_the_effective_configuration_is_printed_masked(
    app: typer.Typer, file: Path, option: str
) -> None:
    result = CliRunner().invoke(app, [option, str(file)])
    assert result.exit_code == 0
    assert tomllib.loads(result.stdout)["sources"]["app"]["slot"] == "walstream"
    assert "password=***" in result.stdout
    assert "cAnArY" not in result.output


def test_the_schema_needs_no_file(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["--json-schema"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "Config"


def test_an_error_goes_to_stderr_with_its_exit_code(
    app: typer.Typer, file: Path
) -> None:
    file.write_text(TEXT.replace("dsn", "dns"))
    result = CliRunner().invoke(app, ["-c", str(file)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean dsn?" in result.stderr
    assert "cAnArY" not in result.output
