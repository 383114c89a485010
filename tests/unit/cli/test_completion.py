"""Names of the configuration are completed; what is wrong with it completes nothing."""

from pathlib import Path

import pytest

from tests.support.programs.shell import completed
from walstream.cli import completion

_CONFIG = """
[sources.app]
kind = "postgres"
dsn = "postgresql://127.0.0.1:1/app"
sinks = ["kafka"]
[sources.archive]
kind = "postgres"
dsn = "postgresql://127.0.0.1:1/app"
slot = "archive"
sinks = ["kafka"]
[sources.legacy]
kind = "sql"
url = "sqlite:////none"
sinks = ["rows"]
[sources.legacy.tables.processes]
primary_key = "id"
[sinks.kafka]
kind = "kafka"
topic = "{source}.{schema}.{table}"
[sinks.kafka.producer]
"bootstrap.servers" = "localhost:1"
[sinks.rows]
kind = "kafka"
format = "row"
topic = "rows.{table}"
[sinks.rows.producer]
"bootstrap.servers" = "localhost:1"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "walstream.toml").write_text(_CONFIG)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("walstream positions show ", ["app", "archive", "legacy"]),
        ("walstream positions rewind ar", ["archive"]),
        ("walstream destroy --source le", ["legacy"]),
        ("walstream poll ", ["legacy"]),
        ("walstream slots --source a", ["app", "archive"]),
        ("walstream tail --sink ", ["kafka", "rows"]),
        ("walstream positions rewind legacy --table ", ["processes"]),
    ],
)
def test_names_of_the_configuration_are_offered(
    folder: Path, line: str, offered: list[str]
) -> None:
    assert completed(line, folder=folder) == offered


def test_the_file_that_the_line_names_counts(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(_CONFIG.replace("archive", "zoo"))
    assert completed(f"walstream destroy -c {other} z", folder=folder) == ["zoo"]


@pytest.mark.parametrize("text", ["", "x = [", "[sources.app]\nkind = 'none'\n"])
def test_no_configuration_and_a_broken_one_offer_nothing(
    tmp_path: Path, text: str
) -> None:
    if text:
        (tmp_path / "walstream.toml").write_text(text)
    assert completed("walstream positions show ", folder=tmp_path) == []


@pytest.mark.parametrize(
    "line",
    ["walstream slots drop ", "walstream backfill --source app ", "walstream tail "],
)
def test_servers_that_do_not_answer_offer_nothing(folder: Path, line: str) -> None:
    assert completed(line, folder=folder) == []


def test_it_asks_for_a_second_at_most() -> None:
    assert completion.TIMEOUT_S <= 1.0
