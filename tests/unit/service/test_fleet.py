"""Which workers there are to be."""

from tests.support.deadline import wait_until
from tests.unit.service.test_config_changes import config
from walstream.config import Config
from walstream.config.run_options import Options
from walstream.service.fleet import Fleet
from walstream.sources.report import DetachedReport, StreamReport, WorkerReport

AWAY = WorkerReport(
    source=StreamReport(away={"log": DetachedReport("away", "s_log", 1.0, "slow")})
)


def without(*sources: str) -> Config:
    made = config().model_dump(mode="json")
    for name in sources:
        del made["sources"][name]
    return Config.model_validate(made)


def take(fleet: Fleet, to: Config) -> list[tuple[str, tuple[str, ...]]]:
    return list(fleet.take(to))


def names(fleet: Fleet) -> list[str]:
    return [one.name for one in fleet.workers]


def test_a_source_that_came_has_a_worker_and_one_that_left_none() -> None:
    fleet = Fleet(without("app"), Options())
    assert names(fleet) == ["shop"]
    assert take(fleet, config()) == [("source 'app' begins", ("sources.app",))]
    assert names(fleet) == ["app", "shop"]

    ((line, keys),) = take(fleet, without("shop"))
    assert "source 'shop' ends" in line
    assert "pg_drop_replication_slot('walstream')" in line  # it keeps WAL
    assert keys == ("sources.shop",)
    fleet.drop_retired()
    assert names(fleet) == ["app"]


def test_a_source_that_comes_back_before_it_was_forgotten_goes_on() -> None:
    fleet = Fleet(config(), Options())
    take(fleet, without("shop"))
    take(fleet, config())
    fleet.drop_retired()
    assert names(fleet) == ["app", "shop"]
    assert all(one.exit_code is None for one in fleet.workers)


def test_one_that_had_stopped_for_good_is_tried_again_at_a_reload() -> None:
    fleet = Fleet(config(), Options())
    fleet.workers[0].restarts.exit_code = 4
    assert take(fleet, config()) == []
    assert fleet.workers[0].exit_code is None


def test_one_that_is_lent_is_not_started_at_a_reload() -> None:
    fleet = Fleet(config(), Options())
    fleet.workers[0].lend()
    take(fleet, config())
    assert not fleet.workers[0].start_if_due()


def test_a_slot_that_another_source_names_is_not_said_to_be_dropped() -> None:
    fleet = Fleet(without("shop"), Options())
    made = without("shop").model_dump(mode="json")
    made["sources"]["late"] = made["sources"].pop("app")  # another name
    (farewell, _), _ = take(fleet, Config.model_validate(made))
    assert "source 'app' ends; source 'late' names slot 'walstream'" in farewell
    assert farewell.endswith("move state folder app in the place of late")


def test_a_source_that_ends_leaves_the_slots_of_its_detached_sinks_too() -> None:
    fleet = Fleet(config(), Options())
    fleet.workers[1].history.report = AWAY
    ((line, _),) = take(fleet, without("shop"))
    assert "its slot 'walstream', and those of detached sinks, 's_log'," in line
    assert "pg_drop_replication_slot('walstream')" in line
    assert "pg_drop_replication_slot('s_log')" in line


def test_a_source_begins_again_when_the_sink_that_it_lost_has_ended() -> None:
    fleet = Fleet(config(), Options())
    _, shop = fleet.workers
    shop.history.report = AWAY
    fleet.follow_sinks()
    away = fleet.away["shop/log"]
    assert away.start_if_due()
    made = config().model_dump(mode="json")
    made["sources"]["shop"]["sinks"] = ["kafka"]
    take(fleet, Config.model_validate(made))
    assert [fleet.may_start(one) for one in fleet.workers] == [True, False]
    away.kill()

    def ended() -> bool:
        away.reap(stopping=False)
        return away.pid is None

    wait_until(ended, 10, "it ended")
    assert fleet.may_start(shop)
    # until the source's own has ended it tells of a sink that it has no more
    for _ in range(2):
        fleet.follow_sinks()
        assert not fleet.away


def test_a_sink_that_is_detached_has_a_worker_until_it_is_configured_no_more() -> None:
    fleet = Fleet(config(), Options())
    fleet.workers[1].history.report = AWAY
    fleet.follow_sinks()
    assert list(fleet.away) == ["shop/log"]
    made = config().model_dump(mode="json")
    made["sources"]["shop"]["sinks"] = ["kafka"]
    take(fleet, Config.model_validate(made))
    fleet.workers[1].history.report = None
    fleet.follow_sinks()
    assert not fleet.away


def test_consents_are_not_of_a_source_that_comes_later() -> None:
    fleet = Fleet(without("app"), Options(adopt_slot=True))
    take(fleet, config())
    given = {one.name: one.order.issue().options.adopt_slot for one in fleet.workers}
    assert given == {"app": False, "shop": True}


def test_a_source_that_left_before_its_end_is_remembered() -> None:
    fleet = Fleet(config(), Options(until_lsn="now"))
    take(fleet, without("shop"))
    fleet.drop_retired()
    assert (names(fleet), fleet.left_code) == (["app"], 5)
    fleet.drop_retired()
    assert fleet.left_code == 5
    plain = Fleet(config(), Options())
    take(plain, without("shop"))
    plain.drop_retired()
    assert plain.left_code == 0
