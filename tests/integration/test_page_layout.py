"""The page in a real browser: nothing is cut at any width, in any state."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from tests.support.deadline import wait_until
from tests.support.programs.browser import browser
from tests.unit.service.http.conftest import config, snapshot, told
from walstream.config import Config
from walstream.service.http import app
from walstream.service.http.board import Board
from walstream.service.http.server import Face
from walstream.service.http.socket import listen
from walstream.telemetry.counts import ProcessCounts
from walstream.telemetry.meter import Meter

WIDTHS = (1280, 770, 520, 480, 400, 360)
HOSTILE = '<img src=x onerror="document.title=1">"\'&'
LONG = "an_extremely_long_schema_name_of_sixty_three_characters_in_all__.x" + "y" * 60
_OVERFLOWS = """
const wide = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > wide) found.push("document");
for (const one of document.querySelectorAll("body *")) {
  if (one.closest("thead, .skip, svg, progress, meter")) continue;
  const box = one.getBoundingClientRect();
  const cut = one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
    && getComputedStyle(one).display !== "inline";
  if (box.right > wide + 0.5 || box.left < -0.5 || cut)
    found.push(one.outerHTML.slice(0, 120));
}
return found;
"""
pytestmark = pytest.mark.same_on_15


def error(**changed: Any) -> dict[str, Any]:
    return {
        "at": time.time() - 42,
        "error": 'role "nobody" does not exist',
        "hint": "create the role, or correct the dsn",
        "repair": "",
        "sql": 'CREATE ROLE "nobody" LOGIN REPLICATION;\nGRANT SELECT ON "a"."b" TO x;',
        "then": "walstream run",
        "exit_code": 4,
        "final": True,
        **changed,
    }


def counted(tables: int, delivered: int) -> ProcessCounts:
    meter = Meter()
    for index in range(tables):
        meter.tables.of(f"public.table_{index}").ops += 1000 * (tables - index)
    meter.tables.of(f"public.{HOSTILE}").ops += 10_000_000
    meter.tables.of(LONG).ops += 10_000_001
    sink = meter.sink("kafka")
    for _ in range(delivered):
        # a commit a moment ago, as PostgreSQL counts
        committed = int((time.time() - 946684800 - 0.004) * 1e6)
        sink.deliver(1, committed, 0.0, meter.tables.of("public.table_1"))
    return ProcessCounts(metrics=meter.report(), errors={"transient": 2})


HEALTH = {
    "retained_wal": 7 << 30,
    "wal_status": "extended",
    "safe_wal_size": 3 << 30,
    "flush_lsn": 0x2000,
    "lost": None,
}
LIMITS = {
    "publications": ["walstream", "walstream_inserts"],
    "limits": {
        f"shop.{HOSTILE}": {
            "reason": "only its inserts are captured: it has no primary key",
            "sql": 'ALTER TABLE "shop"."events" REPLICA IDENTITY FULL;',
        },
        "sohp.*": {"reason": "pattern matches no table; is 'shop.*' meant?", "sql": ""},
    },
    "more": 7,
}
KAFKA = {
    "kafka": {
        "waiting": True,
        "outage": {"why": "127.0.0.1:9092: connection refused", "hint": "start it"},
        "in_flight": 10_000,
        "dropped": 0,
        "tables": {},
    }
}
STATES: dict[str, dict[str, Any]] = {
    "streaming": {"health": HEALTH, "capture": LIMITS},
    "backfill": {
        "state": "backfilling",
        "backfill": {
            "tables": 3,
            "chunks": 40,
            "chunks_done": 12,
            "rows": 1_200_003,
            "bytes": 1 << 30,
            "rows_per_s": 123_456.0,
            "share": 0.31,
            "left_s": 95.0,
        },
        "backfill_record": {"lsn": 1, "tables": [LONG, "shop.orders", "shop.items"]},
        "beside": {
            LONG: {"rows": 1000, "state": "reading", "error": ""},
            "shop.b": {"rows": 0, "state": "error", "error": "no right to read it"},
        },
    },
    "failed": {
        "pid": None,
        "exit_code": 4,
        "state": "stopped",
        "error": error(),
        "resume": None,
        "health": None,
        "ops": 0,
        "delivered": 0,
        "ops_per_s": None,
        "delivered_per_s": None,
        "lag_s": None,
        "current_at": None,
        "sinks": {},
    },
    "waiting": {
        "sinks": KAFKA,
        "lag_s": 73.0,
        "stalls": ["sink 'kafka' waits for Kafka: 127.0.0.1:9092: connection refused"],
    },
    "detached": {
        "away": {
            "kafka": {
                "phase": "away",
                "slot": "walstream__kafka",
                "since": time.time() - 100,
                "why": "it is 12.0 GiB behind",
                "waits": "",
            }
        },
        "sinks": {},
    },
}


def many(names: list[str]) -> Config:
    made = config()
    source = made.sources["app"]
    return made.model_copy(update={"sources": dict.fromkeys(names, source)})


def board_of(state: str) -> Board:
    names = [f"source_{n:02}" for n in range(20)] if state == "sources" else ["app"]
    now = [1000.0]
    board = Board(many(names), lambda: now[0])
    tables = 500 if state == "tables" else 3
    changed = STATES.get(state, {})
    began = time.time()
    first, last = counted(tables, 10), counted(tables, 60)
    for step in range(20):
        sources = {
            name: told(
                **{
                    "heard_at": now[0],  # by the board's clock
                    "lag_s": step / 10,
                    "ops_per_s": 40.0 * step,
                    **changed,
                }
            )
            for name in names
        }
        counts = dict.fromkeys(names, last if step else first)
        made = snapshot({}, sources=sources, counted=counts)
        board.publish(replace(made, at=began - 40 + 2 * step, made_at=now[0]))
        now[0] += 2.0
    return board


@pytest.fixture(scope="module")
def chrome() -> Iterator[webdriver.Chrome]:
    with browser(1280) as page:
        yield page


@pytest.fixture
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    where = "127.0.0.1:0"
    answers = app.make(board_of(request.param), str)
    made = Face("listen", where, listen(where), answers)

    def is_up() -> bool:
        made.watch()
        connection = HTTPConnection(made.address, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status > 0
        except OSError:
            return False
        finally:
            connection.close()

    try:
        wait_until(is_up, 10, "it answers")
        yield made
    finally:
        made.close()


def resize(chrome: webdriver.Chrome, width: int, *, dark: bool = False) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def keep_picture(chrome: webdriver.Chrome, name: str) -> None:
    """Keep a screenshot of the whole page where a folder for them is named."""
    if not (folder := os.environ.get("WALSTREAM_TEST_PICTURES")):
        return
    height = chrome.execute_script("return document.documentElement.scrollHeight")
    width = chrome.execute_script("return document.documentElement.clientWidth")
    size = {"width": width, "height": min(int(height), 4000)}
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {**size, "deviceScaleFactor": 1, "mobile": False},
    )
    chrome.save_screenshot(str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize("face", [*STATES, "sources", "tables"], indirect=True, ids=str)
def test_nothing_is_cut_at_any_width(
    chrome: webdriver.Chrome, face: Face, request: pytest.FixtureRequest
) -> None:
    state = request.node.callspec.params["face"]
    for width in WIDTHS:
        for span in ("5m", "1h") if state == "streaming" else ("5m",):
            resize(chrome, width, dark=width == 770)
            chrome.get(f"http://{face.address}/?span={span}")
            assert chrome.execute_script(_OVERFLOWS) == [], f"{state} at {width}"
            keep_picture(chrome, f"{state}-{width}-{span}")
    said: list[object] = chrome.get_log("browser")  # type: ignore[no-untyped-call]
    assert not said  # the policy refused nothing


@pytest.mark.parametrize("face", ["streaming"], indirect=True)
def test_a_hostile_table_name_is_text(chrome: webdriver.Chrome, face: Face) -> None:
    resize(chrome, 1280)
    chrome.get(f"http://{face.address}/")
    assert HOSTILE in chrome.find_element("tag name", "main").text
    assert not chrome.find_elements("tag name", "img")
    assert chrome.title == "● walstream"


@pytest.mark.parametrize("face", ["streaming"], indirect=True)
def test_a_streaming_source_shows_latency_wal_and_what_is_left_out(
    chrome: webdriver.Chrome, face: Face
) -> None:
    resize(chrome, 1280)
    chrome.get(f"http://{face.address}/")

    def shown(key: str) -> str:
        where = f"[data-k='source/app/{key}']"
        return chrome.find_element("css selector", where).text

    p50, p99 = shown("sinks/kafka/2"), shown("sinks/kafka/3")
    assert p50.endswith(" ms")
    assert p99.endswith(" ms")
    assert "7.0 GiB\nof 10 GiB (alarm), slot walstream: extended" in shown("wal")
    assert "and 7 more: walstream check" in shown("limits")
    assert "only its inserts are captured" in shown("limits")


@pytest.mark.parametrize("face", ["tables"], indirect=True)
def test_many_tables_are_bounded_and_counted(
    chrome: webdriver.Chrome, face: Face
) -> None:
    resize(chrome, 1280)
    chrome.get(f"http://{face.address}/")
    more = chrome.find_element("css selector", "[data-k='source/app/captured']")
    assert more.text.startswith("and 476 tables more with ")
    rows = chrome.find_elements("css selector", "tbody tr")
    assert len(rows) == 25 + 1


@pytest.mark.parametrize("face", ["failed"], indirect=True)
def test_a_failed_source_shows_its_repair_and_no_empty_charts(
    chrome: webdriver.Chrome, face: Face
) -> None:
    resize(chrome, 1280)
    chrome.get(f"http://{face.address}/")
    copied = [one.text for one in chrome.find_elements("css selector", "pre code")]
    assert copied == [error()["sql"]]
    assert "create the role, or correct the dsn" in chrome.page_source
    assert not chrome.find_elements("css selector", "svg.chart")
    figures = [one.text for one in chrome.find_elements("tag name", "dt")]
    assert figures == []
