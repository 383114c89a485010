"""Files of TLS that are not there: what is refused, and what libpq says itself."""

import os
from pathlib import Path

import pytest

from walstream.config.tls_files import refuse_missing
from walstream.errors import CertificateRefused


def said(
    parameters: dict[str, str], environment: dict[str, str] | None = None
) -> tuple[str, str]:
    with pytest.raises(CertificateRefused) as refused:
        refuse_missing(parameters, environment or {}, "dsn")
    return str(refused.value.args[0]), refused.value.hint


@pytest.mark.parametrize(
    "name", ["sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"]
)
def test_a_missing_file_is_named_with_its_key_and_the_cure(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "none.pem"
    what, hint = said({name: str(file)})
    assert what == f"{name} of the dsn: {file} does not exist"
    assert hint.startswith(f"correct {name} of the dsn, or put the file there")
    file.touch()
    refuse_missing({name: str(file)}, {}, "dsn")
    below, _ = said({name: f"{file}/deeper"})
    assert "does not exist" in below


def test_a_variable_is_named_as_such_and_a_parameter_wins(tmp_path: Path) -> None:
    nowhere = {"PGSSLCRL": "/nowhere/crl.pem"}
    assert said({}, nowhere)[0].startswith("the variable PGSSLCRL: /nowhere/crl.pem")
    there = tmp_path / "crl.pem"
    there.touch()
    refuse_missing({"sslcrl": str(there)}, nowhere, "dsn")


def test_a_file_that_may_not_be_read_is_refused_but_a_key_which_libpq_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "crl.pem"
    file.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert said({"sslcrl": str(file)})[0].endswith("cannot be read by this user")
    refuse_missing({"sslkey": str(file)}, {}, "dsn")


def test_a_folder_that_may_not_be_entered_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)
    assert said({"sslcert": str(tmp_path)})[0].endswith("read: Permission denied")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sslrootcert": "system"},
        {"sslkey": "pkcs11:label"},
        {"sslcert": "/nowhere/x", "sslmode": "disable"},
    ],
)
def test_what_names_no_file_that_is_used_is_let_through(
    parameters: dict[str, str],
) -> None:
    refuse_missing(parameters, {}, "dsn")
    refuse_missing({"sslcert": "/nowhere/x"}, {"PGSSLMODE": "disable"}, "dsn")
