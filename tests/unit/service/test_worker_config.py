"""What each process of a worker is started with."""

import os

from tests.unit.service.http.conftest import config
from walstream.config import Config
from walstream.config.run_options import Options
from walstream.service.worker_config import WorkerConfig


def changed() -> Config:
    return config().model_copy(update={"shutdown_timeout": 1.0})


def order(options: Options | None = None) -> WorkerConfig:
    return WorkerConfig(config(), "app", options or Options(), "log")


def test_a_process_is_told_whose_it_is_and_what_it_goes_by() -> None:
    made = order()
    made.level = "debug"
    issued = made.issue()
    assert (issued.parent, issued.source) == (os.getpid(), "app")
    assert issued.options.sink == "log"
    assert issued.log_level == "debug"
    assert Config.from_json(issued.config) == config()


def test_a_change_is_one_to_what_the_last_process_began_with() -> None:
    made = order()
    assert made.take(changed()) == []  # none was started
    made.take(config())
    made.issue()
    assert made.take(config()) == []
    assert made.take(changed()) == ["shutdown_timeout"]
    assert made.take(changed()) == ["shutdown_timeout"]  # it runs still
    assert Config.from_json(made.issue().config).shutdown_timeout == 1.0
    assert made.take(changed()) == []


def test_a_drain_has_ten_seconds_beyond_the_workers_own_deadline() -> None:
    made = order()
    made.take(changed())
    assert made.drain_s == 11.0


def test_consents_are_of_the_first_stream_alone() -> None:
    """A failover of a later day is not the one that somebody looked at."""
    made = order(Options(accept_timeline=True))
    assert made.issue().options.accept_timeline
    made.forget_consents()
    assert not made.issue().options.accept_timeline
    assert made.issue().options.sink == "log"


def test_now_is_once_and_the_lsn_that_it_was_from_then_on() -> None:
    made = order(Options(until_lsn="now"))
    made.end_at("")
    assert made.issue().options.until_lsn == "now"  # no server has said it yet
    made.end_at("0/A")
    made.end_at("0/B")
    assert made.issue().options.until_lsn == "0/A"
    made = order()
    made.end_at("0/A")
    assert made.issue().options.until_lsn == ""


def moved(dsn: str) -> Config:
    made = config().model_dump(mode="json")
    made["sources"]["app"]["dsn"] = dsn
    return Config.model_validate(made)


def test_now_is_another_lsn_where_a_reload_names_another_server() -> None:
    made = order(Options(until_lsn="now"))
    made.issue()
    made.end_at("0/A")
    assert made.take(changed()) == ["shutdown_timeout"]
    assert made.issue().options.until_lsn == "0/A"  # the same server
    assert made.take(moved("host=elsewhere")) == [
        "shutdown_timeout",
        "sources.app.dsn",
    ]
    made.end_at("0/A")  # as the process still says that drains
    assert made.issue().options.until_lsn == "now"
    made.end_at("0/7")
    assert made.issue().options.until_lsn == "0/7"


def test_who_is_stopped_before_an_end_says_so_by_its_exit_code() -> None:
    until = Options(until_lsn="now")
    assert WorkerConfig(config(), "app", until, "").stopped_code == 5
    assert WorkerConfig(config(), "app", until, "log").stopped_code == 0
    assert WorkerConfig(config(), "app", Options(), "").stopped_code == 0
