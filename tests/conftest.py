"""What every test gets: a clean environment, the servers, and skips that show."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.project import skip

pytest_plugins = [
    "tests.support.fixtures.postgres",
    "tests.support.fixtures.mariadb",
    "tests.support.fixtures.kafka",
    "tests.support.fixtures.registry",
    "tests.support.fixtures.walstream",
    "tests.support.fixtures.consumer",
    "tests.support.fixtures.log_levels",
    "tests.support.fixtures.spark",
    "tests.support.fixtures.tls",
    "tests.support.fixtures.packages",
    "tests.support.fixtures.container",
    "tests.support.project.interruption",
    "tests.support.project.check_beside",
    "tests.support.project.sample",
    "tests.support.project.shard",
]

# machines differ, and are slow at times; failures can be replayed
settings.register_profile(
    "walstream",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("walstream")

_KEPT = "WALSTREAM_TEST_"
_MARKED_BY = {
    "postgres": {"postgres15", "postgres18", "postgres", "own_postgres"},
    "mariadb": {"mariadb", "own_mariadb"},
    "kafka": {"kafka", "own_kafka"},
}

_ON_15 = re.compile(r"[\[-](pg)?15[-\]]")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(skip.Watch(Path(__file__).with_name("may_skip.txt")))
    for name in list(os.environ):
        if name.startswith("WALSTREAM_") and not name.startswith(_KEPT):
            del os.environ[name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("same_on_15") and _ON_15.search(item.name):
            item.add_marker(pytest.mark.fault_long)
        names = set(getattr(item, "fixturenames", ()))
        for marker, fixtures in _MARKED_BY.items():
            if names & fixtures:
                item.add_marker(marker)
