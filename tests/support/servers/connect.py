"""Kafka Connect with Debezium's connectors and sinks, as one process of its own.

with LocalConnect(kafka.bootstrap) as connect:
    connect.put("app", {"connector.class": …})   # back when its tasks run
"""

import json
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from tests.support.servers.maven import jars
from walstream.spark.java import (
    find_java,
)
from walstream.testing.servers.kafka import render
from walstream.testing.servers.port import HOST, free_port
from walstream.testing.servers.process import Child
from walstream.testing.servers.server import SingleProcess

DEBEZIUM: Final = "3.5.0.Final"
_CONNECT: Final = "4.1.1"  # what this Debezium is made with
_RUNTIME: Final = (
    *(
        f"org.apache.kafka:connect-{part}:{_CONNECT}"
        for part in ("runtime", "json", "transforms")
    ),
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4!",
)
SOURCE: Final = (f"io.debezium:debezium-connector-postgres:{DEBEZIUM}", *_RUNTIME)
"""Coordinates of a Connect with Debezium's PostgreSQL connector."""
SINK: Final = (
    f"io.debezium:debezium-connector-jdbc:{DEBEZIUM}",
    "org.antlr:antlr4-runtime:4.13.2!",  # Hibernate's; the nearest is older
)
"""What its JDBC sink needs beside that."""
_MAIN: Final = "org.apache.kafka.connect.cli.ConnectStandalone"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
_START_S: Final = 120.0
_LOOK_EVERY_S: Final = 0.1

Settings = Mapping[str, object]


def worker(bootstrap: str, folder: Path, port: int) -> dict[str, object]:
    """Return the settings of a worker that writes JSON without schemas."""
    return {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://{HOST}:{port}",
        "key.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "plugin.discovery": "service_load",
    }


def postgres_source(name: str, port: int, database: str = "postgres") -> Settings:
    """Return the settings of Debezium's connector; its slot has its name."""
    return {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": 1,
        "database.hostname": HOST,
        "database.port": port,
        "database.user": "postgres",
        "database.password": "",
        "database.dbname": database,
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        # "starts from the time when the slot was created", which is what is wanted
        "snapshot.mode": "no_data",
        "publication.autocreate.mode": "disabled",
    }


def jdbc_sink(topics: Sequence[str], port: int, database: str) -> Settings:
    """Return the settings of Debezium's sink; a table has its topic's name with `_`."""
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": 1,
        "topics": ",".join(topics),
        "connection.url": f"jdbc:postgresql://{HOST}:{port}/{database}",
        "connection.username": "postgres",
        "connection.password": "postgres",  # it wants one; the server asks for none
        "connection.pool.min_size": 1,
        "connection.pool.max_size": 2,
        "insert.mode": "upsert",
        "primary.key.mode": "record_key",
        "delete.enabled": "true",
        "schema.evolution": "basic",
        "key.converter": _JSON,
        "value.converter": _JSON,
        # a moved key of several types stops the sink otherwise, whoever wrote it
        "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def write_properties(path: Path, settings: Settings) -> Path:
    path.write_text(render({name: str(one) for name, one in settings.items()}), "utf-8")
    return path


def command(
    class_path: Sequence[Path], folder: Path, *files: Path, heap: str
) -> list[str | Path]:
    """Return what runs a worker on its properties and those of its connectors."""
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    options = (f"-Xmx{heap}", f"-Dlog4j2.configurationFile={logging}")
    classes = ":".join(map(str, class_path))
    return [find_java(), *options, "-XX:-UsePerfData", "-cp", classes, _MAIN, *files]


class LocalConnect(SingleProcess):
    """A worker that keeps offsets and connectors over its starts, as long as it is."""

    name = "Connect"

    def __init__(
        self,
        bootstrap: str,
        *coordinates: str,  # of Maven; default: Debezium's source and sink
        settings: Settings | None = None,
        heap: str = "768m",
        converter: str = "",  # coordinate of one, with what it needs
    ) -> None:
        self._class_path = jars(*(coordinates or (*SOURCE, *SINK)))
        if converter:
            # apart: its own versions would take the place of the others'
            self._class_path = [*self._class_path, *jars(converter)]
        super().__init__(None)
        self._bootstrap = bootstrap
        self._heap = heap
        self._settings = dict(settings or {})
        self._connectors: dict[str, dict[str, str]] = {}
        self._port = 0

    def put(self, name: str, settings: Settings) -> None:
        """Start a connector, or another form of it; back when its task runs."""
        config = {key: str(one) for key, one in settings.items()}
        self._connectors[name] = {**config, "name": name}
        if self.running:
            self._ask("PUT", f"/connectors/{name}/config", self._connectors[name])
            self.until_running(name)

    def delete(self, name: str) -> None:
        """Stop a connector as its operator would: what it has read is flushed."""
        del self._connectors[name]
        self._ask("DELETE", f"/connectors/{name}")

    def until_running(self, name: str, timeout_s: float = _START_S) -> None:
        """Wait for the task; raise AssertionError with its trace if it failed."""
        deadline = time.monotonic() + timeout_s
        while not self.runs(name):
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} does not run:\n{self.log_end()}")
            time.sleep(_LOOK_EVERY_S)

    def runs(self, name: str) -> bool:
        """Tell whether the connector's task runs; raise AssertionError if it failed."""
        status, told = self._request("GET", f"/connectors/{name}/status")
        if status != 200:  # it is being made
            return False
        parts = [told["connector"], *told["tasks"]]
        for one in parts:
            if one["state"] == "FAILED":
                raise AssertionError(f"{name} failed:\n{one['trace']}")
        return len(parts) > 1 and all(one["state"] == "RUNNING" for one in parts)

    def _ask(self, method: str, path: str, body: object = None) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            status, told = self._request(method, path, body)
            if status < 300:
                return
            # 409: another connector is being started or stopped
            if status != 409 or time.monotonic() > deadline:
                raise AssertionError(f"{method} {path}: {status} {told}")
            time.sleep(_LOOK_EVERY_S)

    def _request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = HTTPConnection(HOST, self._port, timeout=_START_S)
        try:
            text = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(content or b"null")

    def _choose_ports(self) -> None:
        self._port = free_port()

    def _launch(self) -> Child:
        settings = worker(self._bootstrap, self.folder, self._port)
        files = [
            write_properties(
                self.folder / "worker.properties", {**settings, **self._settings}
            )
        ]
        files += [
            write_properties(self.folder / f"{name}.properties", connector)
            for name, connector in self._connectors.items()
        ]
        return Child(
            command(self._class_path, self.folder, *files, heap=self._heap),
            log=self.log,
        )

    def _ready(self) -> bool:
        try:
            return self._request("GET", "/connectors")[0] == 200
        except (OSError, HTTPException, ValueError):
            return False
