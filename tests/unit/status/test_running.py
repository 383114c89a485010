"""Only a source that streams holds its slot; who waits uses its folder alone."""

from pathlib import Path

from walstream.state.lock import FolderLock
from walstream.status.running import Streaming, of_status, streaming


def test_only_what_streams_counts() -> None:
    told = {
        "pid": 7,
        "sources": {
            "streams": {"state": "streaming", "pid": 8},
            "waits": {"state": "waiting", "pid": 9},
            "begins": {"pid": 10},
            "has_ended": {"state": "streaming", "pid": None},
        },
    }
    assert of_status(told) == Streaming(7, {"streams": 8})


def test_nothing_streams_where_nobody_answers(tmp_path: Path) -> None:
    assert streaming(tmp_path / "none") == Streaming()
    lock = FolderLock(tmp_path)
    lock.acquire()
    assert streaming(tmp_path) == Streaming()
    lock.release()
