"""What a running instance tells; only a source that streams holds its slot."""

from dataclasses import replace
from pathlib import Path

from walstream.sources.report import PollReport, StreamReport, WorkerReport
from walstream.state.lock import FolderLock
from walstream.status.instance import (
    Instance,
    Streaming,
    instance_document,
    instance_of,
    running,
    streamed_by,
    streaming,
)
from walstream.status.worker_state import WorkerState
from walstream.telemetry.json_codec import dumps, loads

STREAMS = WorkerState(report=WorkerReport(state="streaming"), pid=8)
WAITS = WorkerState(report=WorkerReport(state="waiting"), pid=9)


def test_only_what_streams_counts() -> None:
    workers = {
        "streams": STREAMS,
        "waits": WAITS,
        "begins": WorkerState(pid=10),
        "has_ended": replace(STREAMS, pid=None),
    }
    assert streamed_by(Instance(7, sources=workers)) == Streaming(7, {"streams": 8})


def test_nothing_streams_where_nobody_answers(tmp_path: Path) -> None:
    assert streaming(tmp_path / "none") == Streaming()
    lock = FolderLock(tmp_path)
    lock.acquire()
    assert streaming(tmp_path) == Streaming()
    assert running(tmp_path) is None
    lock.release()


def test_an_instance_is_read_as_it_was_written() -> None:
    stream = WorkerReport(state="streaming", source=StreamReport(ops=3))
    polls = WorkerReport(state="polling", source=PollReport())
    sources = {
        "app": replace(STREAMS, report=stream),
        "legacy": replace(WAITS, report=polls),
    }
    told = Instance(7, 5.5, stopping=True, sources=sources, away={"app/k": STREAMS})
    assert instance_of(loads(dumps(instance_document(told)))) == told


def test_one_of_another_version_is_understood_as_far_as_it_goes() -> None:
    told = {"pid": 7, "sources": {"app": {"pid": 8, "mood": "good"}}, "weather": []}
    assert instance_of(told) == Instance(7, sources={"app": WorkerState(pid=8)})
