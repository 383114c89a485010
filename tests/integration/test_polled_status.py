"""`walstream status` of a sql source at rest: what was stored, whoever reads it."""

import json
import time
from pathlib import Path

import pytest

from tests.support.loads.poll_progress import keep
from tests.support.programs.polled_source import SOURCE, Polled
from tests.support.programs.verb import Terminal, as_json, is_plain, published, verb
from tests.support.programs.walstream import toml
from walstream.state.store import LmdbStore

TABLES = {"t": {}, "main.a_table_with_quite_a_long_name": {}, "u": {"max_gaps": 2}}


@pytest.fixture
def polled(tmp_path: Path) -> Polled:
    """Configure one whose servers are not there: nobody asks them."""
    made = Polled("sqlite:///none.db", "127.0.0.1:1", tmp_path, "x.", tables=TABLES)
    made.configuration.write_text(toml(made.document()))
    return made


def test_what_was_stored_is_shown_whole_on_a_narrow_terminal(polled: Polled) -> None:
    hour_ago = time.time() - 3600
    keep(polled.state, "t", key=2**63 - 1, rows=10**9, given_up=4, at=hour_ago)
    keep(polled.state, "u", key=20, missing=[(4, 6)], noted_at=hour_ago)
    code, text = Terminal(polled.configuration, "status").ends()
    assert code == 0
    assert "9223372036854775807" in text
    assert "1,000,000,000" in text
    assert "1.0 h ago" in text
    assert "3 keys missing, in 1 gap; looked for since 1.0 h" in text
    assert "4 keys never came" in text
    assert "WAL held" not in text  # there is no slot anywhere


def test_programs_get_what_the_schema_says(polled: Polled) -> None:
    new = as_json(polled.configuration, "status", "status")
    assert [source["state"] for source in new["sources"]] == ["new"]
    keep(polled.state, "t", key=12, rows=9)
    found = as_json(polled.configuration, "status", "status")
    (source,) = found["sources"]
    assert (source["name"], source["kind"]) == (SOURCE, "sql")
    assert (source["state"], source["exit_code"]) == ("stopped", 0)
    assert (source["tables"]["t"]["position"], source["delivered"]) == (12, 9)
    assert source["tables"]["u"]["position"] is None
    shown = verb(None, "status", "--json-schema").stdout
    assert json.loads(shown) == published("status")


def test_what_holds_a_table_up_is_red(polled: Polled) -> None:
    keep(polled.state, "t", key=12, error="the row with key 13 has 9 bytes")
    done = verb(polled.configuration, "status")
    assert done.returncode == 5
    assert "blocked: the row with key 13" in done.stdout
    keep(polled.state, "t", key=13, error="")
    keep(polled.state, "u", key=20, missing=[(4, 4), (7, 8)])
    done = verb(polled.configuration, "status")
    assert done.returncode == 5
    assert "no new rows are read: 2 gaps" in done.stdout
    assert is_plain(done.stdout.replace("✗", "!").replace("·", "-"))


def test_what_ended_the_source_is_said_with_its_hint(polled: Polled) -> None:
    error = {
        "at": time.time(),
        "error": "there is no table t",
        "hint": "spell it as the database does",
        "repair": "",
        "exit_code": 2,
        "final": True,
    }
    with LmdbStore(polled.state) as positions:
        positions.write({"error": error})
    done = verb(polled.configuration, "status")
    assert done.returncode == 2
    assert "there is no table t" in done.stdout
    assert "spell it as the database does" in done.stdout
