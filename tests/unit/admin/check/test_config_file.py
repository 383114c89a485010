"""Secrets in a file that others may read are said, with the command that ends it."""

import os
import subprocess
from pathlib import Path

import pytest

from walstream.admin.check.config_file import look_at_file
from walstream.config import load
from walstream.finding import Finding, Severity

TEXT = """
[sources.app]
kind = "postgres"
dsn = "{dsn}"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
[sinks.kafka.producer]
"bootstrap.servers" = "localhost:9092"
"sasl.password" = "{password}"
"""
REFERENCE = "${env:PASSWORD}"


def findings(
    folder: Path, dsn: str = "dbname=app", password: str = REFERENCE, mode: int = 0o644
) -> list[Finding]:
    file = folder / "wal stream.toml"
    file.write_text(TEXT.format(dsn=dsn, password=password), "utf-8")
    file.chmod(mode)
    config = load(file, {"PASSWORD": "dbname", "DSN": "dbname=app", "PORT": "1"})
    return list(look_at_file(config.plain_secrets_in))


@pytest.mark.parametrize(
    "dsn",
    [
        "dbname=app password=plain",
        "postgresql://u:plain@localhost/app",
        "dbname=app sslpassword=plain${env:PASSWORD}",
    ],
)
def test_a_secret_in_an_open_file_is_a_warning(tmp_path: Path, dsn: str) -> None:
    (found,) = findings(tmp_path, dsn)
    assert (found.code, found.severity) == ("configuration-open", Severity.WARNING)
    assert "plain" not in f"{found}"
    assert found.repair.command == f"chmod o= '{tmp_path}/wal stream.toml'"
    subprocess.run(found.repair.command, shell=True, check=True)  # noqa: S602 - ours
    file = tmp_path / "wal stream.toml"
    assert file.stat().st_mode & 0o777 == 0o640
    assert not list(look_at_file(file))


def test_a_property_counts_as_a_connection_string(tmp_path: Path) -> None:
    assert findings(tmp_path, password="plain")  # noqa: S106 - of nothing
    assert not findings(tmp_path, password="")  # none


@pytest.mark.parametrize(
    "dsn",
    [
        "dbname=app",
        "${env:DSN}",
        "password=${env:PASSWORD} dbname=app port=${env:PORT}",
        "postgresql://u:${env:PASSWORD}@localhost:${env:PORT}/app",
    ],
)
def test_who_only_says_where_secrets_are_may_be_read(tmp_path: Path, dsn: str) -> None:
    assert not findings(tmp_path, dsn)


def test_what_others_cannot_read_is_fine(tmp_path: Path) -> None:
    dsn = "dbname=app password=plain"
    assert not findings(tmp_path, dsn, mode=0o640)
    assert not findings(tmp_path, dsn, mode=0o600)
    assert not list(look_at_file(tmp_path / "gone"))
    assert not list(look_at_file(None))


def test_whoever_reads_it_by_the_rights_of_others_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a service whose file belongs to root: it must not lose it."""
    monkeypatch.setattr(os, "geteuid", lambda: 4241)
    monkeypatch.setattr(os, "getegid", lambda: 4242)
    monkeypatch.setattr(os, "getgroups", lambda: [4243])
    file = tmp_path / "w.toml"
    file.touch(0o644)
    (found,) = look_at_file(file)
    lines = found.repair.command.splitlines()
    assert lines == [f"chgrp 4242 {file}", f"chmod g=r,o= {file}"]
