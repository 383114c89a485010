"""Whether goals are met is reckoned from figures alone."""

from typing import Any

import pytest

from bench.goals import verdicts
from bench.programs import AVRO, COMPILED, DEBEZIUM, ENVELOPES, LIMIT, PURE


def run(rate: float, cpu: float = 2.0, rss: float = 100.0) -> dict[str, Any]:
    return {"rows_per_s": rate, "cpu_us_per_row": cpu, "rss_mb": rss}


def test_ratios_are_medians_of_each_runs_own_ratio() -> None:
    figures = {
        LIMIT: [run(100), run(200), run(400)],
        COMPILED: [run(111), run(180), run(480)],
    }
    first = verdicts("A", figures)[0]
    assert (first.found, first.met) == (1.11, True)


def test_the_compiled_form_answers_for_walstream_and_the_pure_one_for_itself() -> None:
    figures = {
        LIMIT: [run(100)],
        COMPILED: [run(112)],
        PURE: [run(69)],
        DEBEZIUM: [run(28)],
    }
    found = {verdict.what: verdict.met for verdict in verdicts("A", figures)}
    assert found == {
        f"{COMPILED} / {LIMIT}, rows/s": True,
        f"{PURE} / {LIMIT}, rows/s": False,
        f"{COMPILED} / {DEBEZIUM}, rows/s": True,
        f"{COMPILED}, CPU a row": True,
        f"{COMPILED}, peak RSS of all its processes": True,
        f"{PURE}, peak RSS of all its processes": True,
    }


@pytest.mark.parametrize(("profile", "met"), [("A", False), ("huge", True)])
def test_a_huge_transaction_may_take_more_memory(profile: str, met: bool) -> None:
    figures = {LIMIT: [run(100)], PURE: [run(99), run(99, rss=180)]}
    figures[LIMIT] *= 2
    assert verdicts(profile, figures)[-1].met is met


def test_void_runs_do_not_count() -> None:
    def latency(p99: float, void: str = "") -> dict[str, Any]:
        return {"p50_ms": 1.0, "p99_ms": p99, "void": void}

    label = f"{PURE}, 1,000 tx/s"
    figures = {label: [latency(900, "late"), latency(10)]}
    assert [verdict.met for verdict in verdicts("latency", figures)] == [True, True]
    # where every run is void nothing is shown, and no goal is met
    void = verdicts("latency", {label: [latency(1, "late")]})
    assert [verdict.met for verdict in void] == [False, False]


def test_a_verdict_says_both_figures() -> None:
    (said,) = verdicts("start", {PURE: [{"wall_s": 1.25}]})
    words = "warm, to the first streamed row: 1.25 s (goal <= 1 s): not met"
    assert str(said) == f"start: {PURE}, {words}"


def test_envelopes_in_each_encoding_are_held_against_ops() -> None:
    figures = {COMPILED: [run(80)], ENVELOPES: [run(40)], AVRO: [run(50)]}
    found = {verdict.what: verdict.met for verdict in verdicts("formats", figures)}
    assert found == {
        f"{ENVELOPES} / {COMPILED}, rows/s": False,
        f"{AVRO} / {COMPILED}, rows/s": True,
    }


def test_envelopes_are_held_against_ops_and_against_debezium() -> None:
    figures = {
        LIMIT: [run(100)],
        COMPILED: [run(80)],
        ENVELOPES: [run(50)],
        DEBEZIUM: [run(25)],
    }
    found = {verdict.what: verdict.met for verdict in verdicts("debezium", figures)}
    assert found == {
        f"{ENVELOPES} / {COMPILED}, rows/s": True,
        f"{ENVELOPES} / {DEBEZIUM}, rows/s": False,
    }


def test_what_a_row_costs_the_machine_is_held_against_debeziums() -> None:
    def costly(cpu: float, sender: float, broker: float) -> dict[str, Any]:
        servers = {"sender_us_per_row": sender, "broker_us_per_row": broker}
        return {**run(100, cpu), **servers}

    figures = {
        LIMIT: [run(100)] * 3,
        COMPILED: [costly(4, 3, 2), costly(4, 3, 3), costly(4, 3, 4)],
        DEBEZIUM: [costly(14, 3, 3), costly(14, 3, 3), costly(14, 3, 3)],
    }
    (found,) = (one for one in verdicts("wide", figures) if "walsender" in one.what)
    assert (found.found, found.met) == (0.5, True)
    # documents of before have the program's own alone
    figures[DEBEZIUM] = [run(50)] * 3
    told = verdicts("wide", figures)
    assert not [one for one in told if "walsender" in one.what]


def test_a_kafka_in_a_network_has_goals_by_how_far_it_is() -> None:
    def far(cpu: float, p99: float) -> dict[str, Any]:
        return {"cpu_percent": cpu, "p99_ms": p99, "void": ""}

    figures = {
        f"{COMPILED}, 1,000 tx/s": [far(99, 999)],  # next to it: no goal
        f"{COMPILED}, 2 ms away, 1,000 tx/s": [far(9, 25)],
        f"{COMPILED}, 20 ms away, 1,000 tx/s": [far(11, 59)],
    }
    found = {one.what: (one.goal, one.met) for one in verdicts("network", figures)}
    assert found == {
        f"{COMPILED}, 2 ms away, 1,000 tx/s, CPU": (10.0, True),
        f"{COMPILED}, 2 ms away, 1,000 tx/s, p99": (24.0, False),
        f"{COMPILED}, 20 ms away, 1,000 tx/s, CPU": (10.0, False),
        f"{COMPILED}, 20 ms away, 1,000 tx/s, p99": (60.0, True),
    }
