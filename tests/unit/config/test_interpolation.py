"""${env:NAME} and ${file:PATH}."""

from pathlib import Path

import pytest

from walstream.config.field import EnvironmentText
from walstream.config.interpolation import Interpolation


def expand(text: str, environment: dict[str, str] | None = None) -> tuple[str, str]:
    """Return the text, and the complaint."""
    interpolation = Interpolation(environment or {})
    expanded = interpolation.expand({"a": [text]})["a"][0]
    return expanded, "".join(map(str, interpolation.problems))


def test_variables_and_files_are_put_into_any_text(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from file\n")
    text = f"x ${{env:A}} ${{env:A}} ${{file:{tmp_path}/secret}} y"
    assert expand(text, {"A": "1"}) == ("x 1 1 from file y", "")


def test_a_path_may_be_built_from_a_variable(tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("host=x\r\n")
    text = "${file:${env:CREDENTIALS_DIRECTORY}/dsn}"
    assert expand(text, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == ("host=x", "")


def test_what_was_put_in_is_not_looked_at_again() -> None:
    assert expand("${env:A}", {"A": "${env:B}$$x"}) == ("${env:B}$$x", "")


def test_a_doubled_dollar_stands_for_one() -> None:
    assert expand("$${env:A} $$ $x {y}") == ("${env:A} $$ $x {y}", "")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("${env:MISSING}", "a[0]: the environment variable MISSING is not set"),
        ("${file:/nonexistent/x}", "/nonexistent/x: cannot be read: No such file"),
        ("${file:${env:MISSING}/x}", "variable MISSING"),
        ("${file:/}", "folder"),
        ("${env:}", "neither ${env:NAME} nor ${file:PATH}"),
        ("${vault:x}", "$${"),
        ("${", "$${"),
        ("${env:A", "$${"),
        ("${env:BYTES}", "UTF-8"),
        ("a\0b", "NUL"),
    ],
)
def test_what_cannot_be_resolved_names_the_key(text: str, complaint: str) -> None:
    expanded, shown = expand(text, {"A": "x", "BYTES": "\udcff"})
    assert shown.startswith("a[0]: ")
    assert complaint in shown
    assert expanded == text


def test_what_came_from_where_is_remembered() -> None:
    interpolation = Interpolation({"A": "x", "B": "y"})
    interpolation.expand({"s": {"dsn": "${env:A}${env:B}", "slot": "z"}})
    assert interpolation.pieces == {("s", "dsn"): ["x", "y"]}


def test_an_override_stays_one() -> None:
    expanded = Interpolation({"A": "x"}).expand(EnvironmentText("${env:A}"))
    assert isinstance(expanded, EnvironmentText)
    assert expanded == "x"


def test_no_secret_stands_in_a_repr() -> None:
    interpolation = Interpolation({"A": "cAnArY"})
    interpolation.expand("${env:A}")
    assert "cAnArY" not in repr(interpolation)
