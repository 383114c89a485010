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
    "tests.support.fixtures.walstream",
    "tests.support.fixtures.consumer",
    "tests.support.fixtures.spark",
    "tests.support.fixtures.tls",
    "tests.support.fixtures.packages",
    "tests.support.project.interruption",
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


# what takes long, and says little of a server's version: on 15 by `make fault` alone
_LONG_ON_15 = {
    "test_a_chunk_that_fails_each_time_is_named_with_its_cause",
    "test_a_detached_sink_outlives_restarts_and_a_reset_drops_its_copy",
    "test_a_failing_read_is_said_kept_and_tried_again",
    "test_a_sink_that_leaves_and_comes_back_misses_nothing_though_all_are_killed",
    "test_a_sink_whose_kafka_hangs_is_detached_while_the_others_go_on",
    "test_after_a_lost_slot_the_printed_repair_makes_it_stream",
    "test_after_damage_the_epoch_is_another",
    "test_an_idle_slot_follows_while_another_database_writes",
    "test_an_instance_killed_in_the_middle_goes_on",
    "test_an_older_copy_of_the_state_is_noticed",
    "test_before_while_and_after_a_run",
    "test_rows_of_before_and_changes_of_meanwhile_are_the_table",
    "test_secrets_show_nowhere",
    "test_sigkill_at_every_step_applies_each_op_once",
    "test_sigkill_at_random_moments_loses_nothing",
    "test_sigterm_repeats_nothing",
    "test_what_cannot_come_in_beside_is_refused",
    "test_what_is_printed_fits_its_published_schema",
}
# whole modules of such: a run of walstream, or several, for each of many events
_LONG_MODULES_ON_15 = {
    "tests.integration.test_identity",
    "tests.integration.test_key_changes",
    "tests.integration.test_mirror_keys",
    "tests.integration.test_publication_lost",
    "tests.integration.test_publication_watch",
    "tests.integration.test_root_keys",
}
_ON_15 = re.compile(r"\[(pg)?15[-\]]")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(skip.Watch(Path(__file__).with_name("may_skip.txt")))
    for name in list(os.environ):
        if name.startswith("WALSTREAM_") and not name.startswith(_KEPT):
            del os.environ[name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_long = getattr(item, "originalname", "") in _LONG_ON_15
        module = getattr(getattr(item, "module", None), "__name__", "")
        is_long = is_long or module in _LONG_MODULES_ON_15
        if is_long and _ON_15.search(item.name):
            item.add_marker(pytest.mark.fault_long)
        names = set(getattr(item, "fixturenames", ()))
        for marker, fixtures in _MARKED_BY.items():
            if names & fixtures:
                item.add_marker(marker)
