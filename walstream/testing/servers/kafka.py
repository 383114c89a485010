"""A throw-away Kafka: one process that is broker and controller (KRaft).

Topics are made by those who want them: nothing is created by being named.
"""

import socket
import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from walstream.spark.java import (
    find_java,
)
from walstream.testing.servers.jars import kafka_class_path
from walstream.testing.servers.port import HOST, free_port
from walstream.testing.servers.process import Child
from walstream.testing.servers.server import SingleProcess

_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    # a killed broker is let in again only when its session is over: not after 9 s
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",  # 50 of them take a second to make
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_HEAP: Final = ("-Xms256m", "-XX:+UseSerialGC")
_TOOL: Final = "kafka.tools.StorageTool"
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
_API_VERSIONS: Final = struct.pack("!ihhih", 10, 18, 0, 1, -1)  # correlation id 1
_ANSWERED: Final = struct.Struct("!iih")  # size, correlation id, error code


class LocalKafka(SingleProcess):
    name = "Kafka"

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
        host: str = HOST,
        heap: str = "512m",
    ) -> None:
        """`host` is any address of the loopback, `heap` what Java may take."""
        self._java = find_java()
        self._class_path = kafka_class_path()
        super().__init__(folder)
        self.settings = dict(settings or {})  # as changed, from the next start on
        self._host = host
        self._heap = f"-Xmx{heap}"
        self._ports = (0, 0)  # broker's, controller's

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def port(self) -> int:
        return self._ports[0]

    @property
    def bootstrap(self) -> str:
        return f"{self._host}:{self.port}"

    def _choose_ports(self) -> None:
        self._ports = free_port(), free_port()

    def _launch(self) -> Child:
        self._configure()
        if not (self.data / "meta.properties").exists():
            self._format()
        return self._java_child(
            *_HEAP, self._heap, "kafka.Kafka", str(self._configuration)
        )

    def _format(self) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # in one word: an identifier may begin with a dash
        command = ("format", f"--cluster-id={cluster}", f"-c{self._configuration}")
        # short of life: compiling would not pay
        tool = self._java_child("-XX:TieredStopAtLevel=1", _HEAP[-1], _TOOL, *command)
        self._child = tool
        if not tool.wait(60.0) or not (self.data / "meta.properties").exists():
            raise self._failure("cannot format its storage")

    def _configure(self) -> None:
        broker, controller = (f"{self._host}:{port}" for port in self._ports)
        settings = {
            **_SETTINGS,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "log.dirs": str(self.data),
            **self.settings,
        }
        self._configuration.write_text(render(settings), "utf-8")
        self._logging.write_text(_LOGGING, "utf-8")

    @property
    def _configuration(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _logging(self) -> Path:
        return self.folder / "log4j2.properties"

    def _java_child(self, *arguments: str) -> Child:
        return Child(
            [
                self._java,
                "-cp",
                ":".join(map(str, self._class_path)),
                f"-Dlog4j2.configurationFile={self._logging}",
                "-Djava.awt.headless=true",
                "-XX:-UsePerfData",  # it would leave a folder in /tmp
                *arguments,
            ],
            log=self.log,
        )

    def _ready(self) -> bool:
        return answers_api_versions(self.port, host=self._host)


def render(settings: Mapping[str, str]) -> str:
    """As lines of a Java properties file."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def answers_api_versions(port: int, timeout_s: float = 5.0, host: str = HOST) -> bool:
    """Ask what a broker answers only once it serves: it listens long before."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(_API_VERSIONS)
            with connection.makefile("rb") as answer:
                head = answer.read(_ANSWERED.size)
    except OSError:
        return False
    return len(head) == _ANSWERED.size and _ANSWERED.unpack(head)[1:] == (1, 0)
