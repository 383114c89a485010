"""`walstream positions` of a sql source, as people type it; and the other verbs."""

import json
from pathlib import Path

import pytest

from tests.support.loads.poll_progress import keep, kept
from tests.support.programs.polled_source import SOURCE, Polled
from tests.support.programs.sqlite_source import execute, file_of
from tests.support.programs.verb import Terminal, as_json, published, verb
from tests.support.programs.walstream import toml
from walstream.state.store import LmdbStore

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (3), (7);"


@pytest.fixture
def polled(tmp_path: Path) -> Polled:
    """Configure one whose Kafka is not there: nobody asks it."""
    execute(file_of(tmp_path), TABLE)
    url = f"sqlite:///{file_of(tmp_path)}"
    made = Polled(url, "127.0.0.1:1", tmp_path, "x.", tables={"t": {}})
    made.configuration.write_text(toml(made.document()))
    return made


def key(polled: Polled) -> int | None:
    found = kept(polled.state, "t")
    return found.key if found else None


def test_both_sides_are_shown_and_fit_the_schema(polled: Polled) -> None:
    keep(polled.state, "t", key=2**62, missing=[(4, 6)])
    found = as_json(polled.configuration, "positions", "positions", "show", SOURCE)
    (source,) = found["polled"]
    assert source["verdict"]["outcome"] == "poll"
    (table,) = source["tables"]
    assert (table["state"]["position"], table["newest_key"]) == (2**62, 7)
    shown = verb(None, "positions", "show", "--json-schema").stdout
    assert json.loads(shown) == published("positions")
    code, text = Terminal(polled.configuration, "positions", "show").ends()
    assert code == 0
    assert "run would poll it from these positions" in text
    assert str(2**62) in text
    assert "its greatest key is 7" in text


def test_a_rewind_is_asked_for_and_done(polled: Polled) -> None:
    keep(polled.state, "t", key=7, missing=[(4, 6)])
    rewind = ("positions", "rewind", SOURCE, "--to", "3")
    unanswered = verb(polled.configuration, *rewind)
    assert (unanswered.returncode, key(polled)) == (2, 7)
    assert "--yes" in unanswered.stderr
    code, text = (
        Terminal(polled.configuration, *rewind).types("y", at="Continue").ends()
    )
    assert (code, key(polled)) == (0, 3), text
    assert "goes back from key 7 to 3" in " ".join(text.split())
    malformed = verb(polled.configuration, *rewind[:-1], "0/3", "--yes")
    assert malformed.returncode == 2
    assert "is not a key, which is a whole number" in malformed.stderr
    done = verb(polled.configuration, *rewind[:-1], "-1", "--table", "t", "--yes")
    assert (done.returncode, key(polled)) == (0, -1), done.stderr


def test_a_reset_forgets_also_what_ended_the_source(polled: Polled) -> None:
    keep(polled.state, "t", key=7)
    error = {"at": 0.0, "error": "x", "hint": "", "repair": "", "exit_code": 3}
    with LmdbStore(polled.state) as positions:
        positions.write({"error": {**error, "final": True}})
    assert verb(polled.configuration, "status").returncode == 3
    done = verb(polled.configuration, "positions", "reset", SOURCE, "--yes")
    assert done.returncode == 0, done.stderr
    assert "the next run starts from scratch" in done.stdout
    assert key(polled) is None
    assert verb(polled.configuration, "status").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("slots --source legacy", "is a sql source, and this is for postgres"),
        ("backfill --source legacy t", "it is polled, not backfilled"),
        ("positions show nope", "there is no source 'nope'"),
        ("poll nope", "there is no sql source 'nope'"),
    ],
)
def test_what_is_not_for_it_is_said_in_a_line(
    polled: Polled, words: str, said: str
) -> None:
    done = verb(polled.configuration, *words.split())
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2
