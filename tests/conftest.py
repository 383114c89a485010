"""What every test gets: a clean environment, the servers, and skips that show."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import skips
from walstream.local.process import unwind_on_sigterm

pytest_plugins = [
    "tests.fix_postgres",
    "tests.fix_mariadb",
    "tests.fix_kafka",
    "tests.fix_walstream",
    "tests.fix_spark",
]

_KEPT = "WALSTREAM_TEST_"
_MARKED_BY = {
    "postgres": {"postgres15", "postgres18", "postgres", "own_postgres"},
    "mariadb": {"mariadb", "own_mariadb"},
    "kafka": {"kafka", "own_kafka"},
}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(skips.Watch(Path(__file__).with_name("may_skip.txt")))
    for name in list(os.environ):
        if name.startswith("WALSTREAM_") and not name.startswith(_KEPT):
            del os.environ[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        for marker, fixtures in _MARKED_BY.items():
            if names & fixtures:
                item.add_marker(marker)


@pytest.fixture(scope="session", autouse=True)
def _servers_end_at_sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    # a job that a shell runs in the background begins with Ctrl-C ignored, and hands
    # that on to all that the tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    unwind_on_sigterm()
    yield
    signal.signal(signal.SIGTERM, before)
