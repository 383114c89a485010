"""A translated configuration is written with its secrets apart, or not at all."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.connector import PLAIN
from walstream.admin.init_from import InitFrom, InitFromOptions
from walstream.config import load
from walstream.errors import ConfigError

PASSWORD: Final = {"database.password": "it's s3cret"}


def options(
    folder: Path, more: Mapping[str, str] = PLAIN, *, force: bool = False
) -> InitFromOptions:
    file = folder / "c.properties"
    entries = {**PLAIN, **more}
    file.write_text("\n".join(f"{key}={one}" for key, one in entries.items()))
    return InitFromOptions(file, folder / "walstream.toml", force=force)


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    found = InitFrom.read(options(tmp_path, PASSWORD), {})
    (path,) = found.write(insecure=False)
    assert path.read_text() == "it\\'s s3cret\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "s3cret" not in (tmp_path / "walstream.toml").read_text()
    dsn = load(tmp_path / "walstream.toml", {}).postgres_source("app").dsn
    assert dsn == "host=localhost user=app password='it\\'s s3cret' dbname=shop"
    assert found.exit_code == 0


def test_its_exit_code_says_that_something_is_to_decide(tmp_path: Path) -> None:
    assert InitFrom.read(options(tmp_path, {"unknown.key": "x"}), {}).exit_code == 3


def test_nothing_is_written_over_unless_told(tmp_path: Path) -> None:
    secret = tmp_path / "walstream.database.password"
    secret.write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        InitFrom.read(options(tmp_path, PASSWORD), {})
    InitFrom.read(options(tmp_path, PASSWORD, force=True), {}).write(insecure=False)
    assert secret.read_text() == "it\\'s s3cret\n"


def test_servers_elsewhere_are_not_proven_by_themselves(tmp_path: Path) -> None:
    wished = options(
        tmp_path,
        {
            "database.hostname": "db.example",
            "producer.override.bootstrap.servers": "${env:BROKERS}",
        },
    )
    found = InitFrom.read(wished, {})
    source, sink = found.unproven
    assert "db.example" in source[0]
    assert sink
    found.write(insecure=False)
    with pytest.raises(ConfigError, match="verify-full"):
        load(wished.output, {"BROKERS": "b.example:9092"})
    InitFrom.read(wished, {}).write(insecure=True)
    load(wished.output, {"BROKERS": "b.example:9092"})


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "{x}"
    folder.mkdir()
    with pytest.raises(ConfigError, match="cannot name it"):
        InitFrom.read(options(folder, PASSWORD), {})
    wished = options(tmp_path)
    away = InitFromOptions(wished.file, tmp_path / "no" / "w.toml")
    with pytest.raises(ConfigError, match="cannot be written"):
        InitFrom.read(away, {}).write(insecure=False)
    with pytest.raises(ConfigError, match="a dsn has no number as its port"):
        InitFrom.read(options(tmp_path, {"database.port": "x"}), {})
