"""What each path says, in each state of a source."""

from typing import Any

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.unit.service.http.conftest import Change
from walstream.service.http import app
from walstream.service.http.board import Board
from walstream.status.model import adapter

TOKEN = "0123456789abcdef"  # noqa: S105 - of the test
STATES: dict[str, dict[str, Any]] = {
    "streaming": {},
    "starting": {"state": "starting", "resume": None, "health": None},
    "waiting": {
        "state": "waiting",
        "error": {
            "at": 1.0,
            "error": "PostgreSQL is away",
            "hint": "",
            "repair": "",
            "exit_code": 5,
            "final": False,
        },
    },
    "silent": {"heard_at": 0.0},
    "dead": {"pid": None, "died_with": -9},
    "failed": {"pid": None, "exit_code": 3},
    "stalled": {"stalls": ["sink 'kafka' is stuck"]},
    "detached": {
        "away": {
            "kafka": {
                "phase": "away",
                "slot": "c",
                "since": 1.0,
                "why": "slow",
                "waits": "",
            }
        }
    },
    "spilled": {
        "health": {
            "retained_wal": 0,
            "wal_status": "reserved",
            "safe_wal_size": None,
            "flush_lsn": 0x2000,
            "lost": None,
            "spilled": 1 << 40,
        }
    },
    "full": {
        "health": {
            "retained_wal": 1 << 40,
            "wal_status": "extended",
            "safe_wal_size": None,
            "flush_lsn": 0x2000,
            "lost": None,
        }
    },
}
WELL = {"streaming", "starting"}


def client(board: Board, **headers: str) -> TestClient:
    made = app.make(board, str)
    return TestClient(
        made,
        base_url="http://127.0.0.1",
        headers=headers,
        raise_server_exceptions=False,
    )


@pytest.mark.parametrize("state", STATES)
def test_status_is_red_for_all_that_does_not_flow_and_names_it(
    board: Change, state: str
) -> None:
    asked = client(board(**STATES[state]))
    answer = asked.get("/status")
    assert answer.status_code == (200 if state in WELL else 500)
    assert ("'app'" in answer.text) == (state not in WELL)
    found = asked.get("/status", headers={"accept": "application/json"})
    assert found.status_code == answer.status_code
    (source,) = adapter().validate_json(found.content).sources
    assert bool(source.exit_code) == (state not in WELL)


@pytest.mark.parametrize("state", STATES)
def test_metrics_can_be_read_in_every_state(board: Change, state: str) -> None:
    answer = client(board(**STATES[state])).get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.text))
    (up,) = [one for one in families if one.name == "walstream_source_up"]
    assert [sample.value for sample in up.samples] == [float(state in WELL)]


@pytest.mark.parametrize("state", STATES)
def test_the_page_says_the_same(board: Change, state: str) -> None:
    text = client(board(**STATES[state])).get("/").text
    assert ("Healthy" in text) == (state == "streaming")
    assert ("In error" in text) == (state not in WELL)


def test_nothing_is_ready_before_it_flows(board: Change) -> None:
    assert client(board()).get("/ready").status_code == 200
    assert client(board(**STATES["starting"])).get("/ready").status_code == 503
    stopping = board(over={"stopping": True})
    assert client(stopping).get("/ready").status_code == 503


def test_health_is_that_of_the_supervisor_alone(board: Change) -> None:
    answer = client(board(**STATES["dead"])).get("/health")
    assert (answer.status_code, answer.text) == (200, "Alive and well\n")
    hanging = client(board(over={"made_at": 0.0}))
    assert hanging.get("/health").status_code == 500
    assert hanging.get("/status").status_code == 500


def test_stats_have_a_line_an_object(board: Change) -> None:
    lines = client(board()).get("/stats").text.splitlines()
    assert [line.partition("=")[0] for line in lines] == ["source", "sink"]


def test_debug_is_switched_on_and_off_by_post_alone(board: Change) -> None:
    said: list[bool] = []

    def set_debug(on: bool) -> str:
        said.append(on)
        return "debug" if on else "info"

    asked = TestClient(
        app.make(board({"token": TOKEN}), set_debug),
        base_url="http://127.0.0.1",
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    assert asked.post("/debug/on").text == "every process logs from level debug on\n"
    assert asked.post("/debug/off").text == "every process logs from level info on\n"
    for wrong in ("/debug", "/debug/", "/debug/maybe", "/debug/on/x"):
        assert asked.post(wrong).status_code == 400
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert asked.request(method, "/debug/on").status_code == 400
    cross = {"sec-fetch-site": "cross-site"}
    assert asked.post("/debug/on", headers=cross).status_code == 403
    other = {"origin": "http://evil.example"}
    assert asked.post("/debug/on", headers=other).status_code == 403
    assert said == [True, False]


def test_without_a_token_nobody_switches_debug_by_http(board: Change) -> None:
    said: list[bool] = []
    made = app.make(board(), said.append)  # type: ignore[arg-type]
    answer = TestClient(made, base_url="http://127.0.0.1").post("/debug/on")
    assert answer.status_code == 403
    assert "walstream debug on" in answer.text
    assert not said


def test_what_is_not_there_is_404_and_a_defect_says_nothing_of_itself(
    board: Change,
) -> None:
    asked = client(board())
    for path in ("/nothing", "/status/x", "/metrics/"):
        assert asked.get(path).status_code == 404
    broken = client(board(resume="no LSN"))
    answer = broken.get("/stats")
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "defect" in answer.text


def test_the_log_says_a_defect_once_however_often_is_asked(board: Change) -> None:
    broken = client(board(resume="no LSN"))
    with structlog.testing.capture_logs() as log:
        for _ in range(3):
            broken.get("/metrics")
    (said,) = log
    assert (said["log_level"], said["path"]) == ("error", "/metrics")
    assert isinstance(said["exc_info"], Exception)


def test_a_name_in_stats_stays_in_its_line(board: Change) -> None:
    name = 'a"b\nsource=evil\x9b\u202e'
    beside = {name: {"rows": 1, "state": "reading", "error": ""}}
    lines = client(board(beside=beside)).get("/stats").text.splitlines()
    assert lines[-1] == (
        r'backfill="app/a\"b\nsource=evil\u009b\u202e" state=reading rows=1'
    )


def test_before_anything_is_known_nothing_is_said_to_be_well(board: Change) -> None:
    empty = Board(board().config)
    for path in ("/", "/status", "/ready", "/metrics"):
        assert client(empty).get(path).status_code == 503
