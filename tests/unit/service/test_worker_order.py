"""What a worker is told is what it understands."""

import json

from walstream.config.run_options import Options
from walstream.service.worker_order import (
    StartOrder,
    WorkerRequest,
    request_line,
    request_of,
    start_line,
    start_of,
)


def test_a_start_is_understood() -> None:
    options = Options(sink="kafka", take_over=True, driver="/tmp/driver")  # noqa: S108
    order = StartOrder(7, "app", '{"config": {}}', "debug", options)
    line = start_line(order)
    assert "\n" not in line
    assert start_of(line) == order


def test_a_consent_of_another_version_is_passed_over() -> None:
    told = json.loads(start_line(StartOrder(7, "app", "{}", "info", Options())))
    told["options"]["later"] = True
    del told["options"]["sink"]
    assert start_of(json.dumps(told)).options == Options()


def test_a_request_comes_behind_its_word() -> None:
    request = WorkerRequest(3, ("s.t",), replace=True)
    word, _, text = request_line("backfill", request).partition(" ")
    assert word == "backfill"
    assert request_of(text) == request
    assert request_of('{"number": 3}') == WorkerRequest(3)
