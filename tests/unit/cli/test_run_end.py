"""What `--until-lsn` goes with, at the start and at a reload."""

from typing import Any

import pytest

from walstream.cli.run_end import RunEnd
from walstream.config import Config
from walstream.errors import ConfigError


def config(*names: str, **others: Any) -> Config:
    sources: dict[str, Any] = {
        name: {"kind": "postgres", "dsn": "dbname=app", "slot": name, "sinks": ["none"]}
        for name in names
    }
    sinks = {"none": {"kind": "discard", "format": "row"}}
    return Config.model_validate({"sources": sources | others, "sinks": sinks})


SQL = {
    "kind": "sql",
    "url": "sqlite:////none",
    "tables": {"t": {"primary_key": "id"}},
    "sinks": ["none"],
}


def test_an_lsn_and_now_are_read() -> None:
    assert RunEnd("").lsn == ""
    assert RunEnd("NOW").lsn == "now"
    assert RunEnd("0/0a").lsn == "0/A"
    with pytest.raises(ConfigError, match="neither an LSN"):
        RunEnd("soon")


def test_without_an_end_everything_goes() -> None:
    RunEnd("").check(config("a", "b", c=SQL))


@pytest.mark.parametrize("text", ["now", "0/A"])
def test_a_source_that_has_no_lsn_is_refused(text: str) -> None:
    end = RunEnd(text)
    end.check(config("a"))
    with pytest.raises(ConfigError, match="'c' is not a postgres source"):
        end.check(config("a", c=SQL))


def test_one_lsn_is_of_one_server_and_stays_with_it() -> None:
    RunEnd("now").check(config("a", "b"))
    with pytest.raises(ConfigError, match="there are 2 sources"):
        RunEnd("0/A").check(config("a", "b"))
    end = RunEnd("0/A")
    end.check(config("a"))
    end.check(config("a"))
    with pytest.raises(ConfigError, match="belongs to source 'a', and 'b' is another"):
        end.check(config("b"))


def at(dsn: str) -> Config:
    source = {"kind": "postgres", "dsn": dsn, "slot": "s", "sinks": ["none"]}
    return config(a=source)


def test_one_lsn_stays_with_the_server_of_the_first_dsn() -> None:
    end = RunEnd("0/A")
    end.check(at("host=one user=u password=old"))
    end.check(at("host=one user=u password=new"))
    with pytest.raises(ConfigError, match="'a' leads to another one"):
        end.check(at("host=two user=u"))
    end.check(at("host=one"))
    now = RunEnd("now")
    now.check(at("host=one"))
    now.check(at("host=two"))
