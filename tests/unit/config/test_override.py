"""WALSTREAM__ variables."""

from typing import Any

import pytest

from walstream.config.override import apply


def overridden(document: dict[str, Any], **environment: str) -> dict[str, Any]:
    assert apply(document, environment) == []
    return document


def test_a_key_is_set_and_its_tables_are_made() -> None:
    assert overridden({}, WALSTREAM__SOURCES__APP__SLOT="x", OTHER="y") == {
        "sources": {"app": {"slot": "x"}}
    }


def test_names_of_the_file_are_met_in_any_writing() -> None:
    document = {"sources": {"my-App": {"slot": "a"}}}
    overridden(document, WALSTREAM__SOURCES__MY_APP__SLOT="b")
    assert document == {"sources": {"my-App": {"slot": "b"}}}


def test_properties_have_dots() -> None:
    producer = {"bootstrap.servers": "a"}
    document = {"sinks": {"k": {"producer": producer}}}
    overridden(
        document,
        WALSTREAM__SINKS__K__PRODUCER__BOOTSTRAP_SERVERS="b",
        WALSTREAM__SINKS__K__PRODUCER__SASL_PASSWORD="0123",  # noqa: S106 - a test's
    )
    assert producer == {"bootstrap.servers": "b", "sasl.password": "0123"}


def test_the_lower_case_name_wins_over_one_in_another_case() -> None:
    document: dict[str, Any] = {"sinks": {"K": {}, "k": {}}}
    overridden(document, WALSTREAM__SINKS__K__FORMAT="row")
    assert document == {"sinks": {"K": {}, "k": {"format": "row"}}}


@pytest.mark.parametrize(
    ("variable", "complaint"),
    [
        ("WALSTREAM__", "empty name"),
        ("WALSTREAM__SOURCES____SLOT", "empty name"),
        ("WALSTREAM__STATE__X", "is not a table"),
        ("WALSTREAM__SINKS__A_B__X", "several keys"),
    ],
)
def test_what_cannot_be_set_names_the_variable(variable: str, complaint: str) -> None:
    document = {"state": "x", "sinks": {"a-b": {}, "a.b": {}}}
    (problem,) = apply(document, {variable: "cAnArY"})
    assert str(problem).startswith(variable)
    assert complaint in str(problem)
    assert "cAnArY" not in str(problem)
