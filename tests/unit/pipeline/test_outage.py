"""What a worker's report says of an outage."""

import json

from walstream.pipeline.outage import Outage


def test_a_report_is_json_that_says_all_of_it() -> None:
    told = Outage("Connection refused", "start it").report()
    assert json.loads(json.dumps(told)) == told
    assert told == {"why": "Connection refused", "hint": "start it", "refused": False}
