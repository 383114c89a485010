"""HTTP of a real run: what it counts, what it says when something is away, the page."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait
from typer.testing import CliRunner

from tests.support.deadline import wait_until, within
from tests.support.fixtures.postgres import Database, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.programs.browser import browser
from tests.support.programs.walstream import Walstream
from tests.support.servers.brief_kafka import BriefKafka
from walstream.cli.main import app
from walstream.config.model import Http
from walstream.service.http.figures import size
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.port import free_port

_RED_S = 30.0
_GREEN_S = 60.0
pytestmark = pytest.mark.fault


@dataclass(frozen=True)
class Site:
    """A run, its servers, and its HTTP."""

    postgres: LocalPostgres
    kafka: LocalKafka
    database: Database
    walstream: Walstream
    port: int

    def get(self, path: str, accept: str = "") -> tuple[int, str]:
        return self.ask("GET", path, accept)

    def ask(self, method: str, path: str, accept: str = "") -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={"Accept": accept})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def value(self, wanted: str, **labels: str) -> float:
        """Sum what /metrics has of this sample, as far as labels are named."""
        families = text_string_to_metric_families(self.get("/metrics")[1])
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == wanted and labels.items() <= sample.labels.items()
        )

    def wait(self, code: int, seconds: float, text: str = "") -> None:
        def found() -> bool:
            status, body = self.get("/status")
            return status == code and text in body

        wait_until(found, seconds, f"/status is {code}")

    @contextmanager
    def red(self, text: str) -> Iterator[None]:
        """See it turn red and name what is away, and green again."""
        self.wait(200, _GREEN_S)
        yield
        self.wait(500, _RED_S, text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    needs_own_servers()
    folder: Path = tmp_path_factory.mktemp("http")
    port = free_port()
    with (
        LocalPostgres() as postgres,
        BriefKafka() as kafka,
        temporary_database(postgres) as database,
    ):
        database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        database.execute("CREATE TABLE keyless (v text)")
        walstream = Walstream(
            database.dsn,
            kafka.bootstrap,
            folder,
            "http.",
            top={"http": {"listen": f"127.0.0.1:{port}"}, "stats_interval": "1s"},
        )
        with walstream:
            made = Site(postgres, kafka, database, walstream, port)
            made.wait(200, _GREEN_S, "streaming")
            yield made
            assert walstream.terminate() == 0, walstream.text


def write(site: Site, rows: int) -> None:
    site.database.execute(
        "INSERT INTO t (v) SELECT 'x' FROM generate_series(1, %s)", rows
    )


def insert(site: Site, rows: int) -> None:
    """Write rows, and wait until they are counted: the next test counts from there."""
    before = site.value("walstream_delivered_total")
    write(site, rows)
    wait_until(
        lambda: site.value("walstream_delivered_total") >= before + rows, 20, "counted"
    )


def test_what_was_streamed_is_counted_and_an_idle_stream_has_no_lag(
    site: Site,
) -> None:
    # what an earlier test killed repeats nothing any more
    wait_until(lambda: site.value("walstream_replication_lag_bytes") == 0, 30, "idle")
    before = site.value("walstream_delivered_total")
    insert(site, 100)
    assert site.value("walstream_delivered_total") == before + 100
    assert site.value("walstream_ops_total", table="public.t") == before + 100
    assert site.value("sink_events", name="kafka", table="public.t") == before + 100
    assert site.value("walstream_end_to_end_latency_seconds_count") >= 1
    wait_until(
        lambda: (
            site.value("walstream_replication_lag_bytes")
            == site.value("walstream_replication_lag_seconds")
            == 0
        ),
        30,
        "no lag",
    )
    wait_until(lambda: site.value("walstream_slot_retained_wal_bytes"), 20, "WAL")
    wait_until(lambda: site.walstream.said("source=app kind=postgres"), 10, "stats")


def test_status_is_what_the_command_says(site: Site) -> None:
    def source() -> Any:
        code, body = site.get("/status", "application/json")
        assert code == 200
        return json.loads(body)["sources"][0]

    wait_until(lambda: source()["slot"], 20, "the server is asked for its slot")
    told = source()
    assert (told["state"], told["problems"]) == ("streaming", [])
    assert told["slot"]["name"] == site.walstream.slot
    assert site.get("/ready") == (200, "ready\n")


def test_a_table_without_a_key_is_named_with_its_repair(site: Site) -> None:
    _, body = site.get("/status", "application/json")
    source = json.loads(body)["sources"][0]
    assert source["limits"]["public.keyless"] == {
        "reason": "only its inserts are captured: it has no primary key",
        "sql": 'ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL;',
    }
    assert len(source["publications"]) == 2
    page = site.get("/")[1]
    assert "REPLICA IDENTITY FULL;</code>" in page
    assert source["publications"][0] in page


def test_debug_reaches_every_process(site: Site) -> None:
    assert site.get("/debug/on")[0] == 400
    status, answer = site.ask("POST", "/debug/on")
    assert status == 403  # any user of this machine may ask, without a token
    assert "walstream debug on" in answer
    debug = ["debug", "-c", str(site.walstream.configuration)]
    assert CliRunner().invoke(app, [*debug, "on"]).exit_code == 0
    insert(site, 1)
    worker = {"source": "app", "level": "debug"}
    wait_until(
        lambda: any(worker.items() <= entry.items() for entry in site.walstream.log),
        30,
        "the worker logs more",
    )
    assert CliRunner().invoke(app, [*debug, "off"]).exit_code == 0
    assert site.ask("POST", "/debug/else")[0] == 400


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_shows_the_numbers_of_metrics(site: Site, scripts: bool) -> None:
    held = "walstream_slot_retained_wal_bytes"
    wait_until(lambda: site.value(held), 20, "the server was asked")
    with browser(400, scripts=scripts) as page:
        # while a page is loaded anew, its driver fails in one of several ways
        asked = WebDriverWait(page, 20, 0.02, [WebDriverException])
        page.get(f"http://127.0.0.1:{site.port}/")

        def shown(key: str) -> str:
            where = f'[data-k="source/app/{key}"]'

            def read(page: WebDriver) -> str:
                return str(page.find_element("css selector", where).text)

            return asked.until(read).split("\n")[0]

        assert shown("state") == "● streaming"
        wait_until(lambda: shown("wal") == size(site.value(held)), 20, "its WAL")
        delivered = int(shown("all").replace(",", ""))
        counted = site.value("walstream_delivered_total")
        if scripts:  # asked elsewhere, it may cost the page its next refresh
            width = "return document.documentElement.scrollWidth"
            assert page.execute_script(width) <= 400
        drawn = "svg.chart polyline"
        assert asked.until(lambda page: page.find_elements("css selector", drawn))
        insert(site, 5)  # it is shown without a key pressed
        wait_until(
            lambda: int(shown("all").replace(",", "")) == delivered + 5,
            20,
            "the page follows",
        )
        assert site.value("walstream_delivered_total") == counted + 5
        said: list[object] = page.get_log("browser")  # type: ignore[no-untyped-call]
        assert not said


def test_the_page_survives_the_worker_and_shows_it(site: Site) -> None:
    with browser(1280) as page:
        page.get(f"http://127.0.0.1:{site.port}/")
        worker = site.walstream.worker_pid()
        os.kill(worker, signal.SIGSTOP)
        try:
            verdict = page.find_element("id", "verdict")
            wait_until(lambda: "In error" in verdict.text, 20, "it is shown")
            assert "silent" in page.find_element("tag name", "main").text
            assert "silent" in page.find_element("id", "events-list").text
        finally:
            os.kill(worker, signal.SIGCONT)
        wait_until(lambda: "Healthy" in verdict.text, 20, "and its end")


def test_a_frozen_worker_is_red_and_a_dead_one_never_green(site: Site) -> None:
    worker = site.walstream.worker_pid()
    with site.red("sends no report"):
        os.kill(worker, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)  # it need not go on for that
    seen: list[int] = []
    deadline = time.monotonic() + _GREEN_S
    while not seen or seen[-1] != 200:
        assert time.monotonic() < deadline
        seen.append(site.get("/status")[0])
        if seen[-1] == 200:
            assert site.walstream.worker_pid() != worker
    site.wait(200, _GREEN_S, "streaming")
    assert site.value("walstream_errors_total", kind="died") == 1


def test_postgres_that_stops_is_red_until_it_is_back(site: Site) -> None:
    with site.red("source 'app'"):
        site.postgres.stop()
    assert site.get("/health")[0] == 200
    assert site.get("/ready")[0] == 503
    site.postgres.start()
    site.wait(200, _GREEN_S, "streaming")


def test_kafka_that_stops_is_red_until_it_is_back_also_when_idle(site: Site) -> None:
    with site.red("sink 'kafka'"):
        site.kafka.stop()
    site.kafka.start()
    site.wait(200, _GREEN_S, "delivering")


@pytest.mark.fault_long
def test_kafka_that_freezes_is_red_until_it_goes_on(site: Site) -> None:
    with site.red("sink 'kafka' is stuck"):
        os.kill(site.kafka.pid, signal.SIGSTOP)
        write(site, 1000)
    os.kill(site.kafka.pid, signal.SIGCONT)
    site.wait(200, _GREEN_S, "delivering")


def test_an_address_that_nobody_asked_for_may_be_taken(
    site: Site, tmp_path: Path
) -> None:
    default = Http().listen
    host, _, port = default.partition(":")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def take() -> bool:  # others' runs have it for a while
            with suppress(OSError):
                taken.bind((host, int(port)))
                taken.listen()
                return True
            return False

        within(take, 30)  # who has it for longer is as good
        other = Walstream(
            site.database.dsn,
            site.kafka.bootstrap,
            tmp_path,
            "other.",
            source={"slot": "other"},
            top={"http": {}},
        )
        with other:
            assert other.said("HTTP is off")
            assert other.terminate() == 0
            other.top = {"http": {"listen": default}}
            other.start().ends_with(2, "http.listen", default)
