"""What processes counted, one after the other."""

from walstream.service.worker_counts import WorkerCounts


def test_the_next_process_counts_on() -> None:
    counts = WorkerCounts()
    assert counts.of({"state": "starting"}) == {}
    counts.keep({"state": "streaming", "metrics": {"ops": 5}})
    assert counts.of({"metrics": {"ops": 2}}) == {"metrics": {"ops": 7}}
    assert counts.of({"metrics": {"ops": 3}}) == {"metrics": {"ops": 8}}


def test_the_rest_of_a_state_is_without_them() -> None:
    assert WorkerCounts.strip({"state": "x", "metrics": {}, "errors": {}}) == {
        "state": "x"
    }
