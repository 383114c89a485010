"""Apicurio's schema registry, as one process of its own.

Its data is in a file: what was registered is there after a kill, unless it is `anew`.
"""

import fcntl
import tarfile
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from tests.support.servers.maven import JarsUnreachable, folder_of_jars
from walstream.spark.java import find_java
from walstream.testing.servers.port import HOST, free_port
from walstream.testing.servers.process import Child
from walstream.testing.servers.server import SingleProcess

VERSION: Final = "3.0.9"  # the last one that Java 17 runs
_JAR: Final = f"apicurio-registry-app-{VERSION}-runner.jar"
_API: Final = "/apis/ccompat/v7"
CONVERTER: Final = "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final"
"""Coordinate of what Kafka Connect reads and writes Avro with."""
_OPTIONS: Final = ("-Xmx256m", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")


def unpacked() -> Path:
    """Return the program's folder; raise JarsUnreachable if it cannot be fetched."""
    folder = folder_of_jars() / f"apicurio-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _JAR).exists():
            with tarfile.open(_archive()) as archive:
                archive.extractall(folder, filter="data")
    return folder


def _archive() -> Path:
    from jgo.maven import MavenContext  # noqa: PLC0415 - slow to import

    project = MavenContext().project("io.apicurio", "apicurio-registry-app")
    wanted = project.at_version(VERSION).artifact(classifier="all", packaging="tar.gz")
    try:
        return Path(wanted.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise JarsUnreachable(f"Apicurio: not fetched from Maven: {error}") from error


class LocalRegistry(SingleProcess):
    """A registry with Confluent's API."""

    name = "Registry"

    def __init__(self) -> None:
        self._program = unpacked()
        super().__init__(None)
        self._port = 0
        self._turn = 0

    @property
    def url(self) -> str:
        """The address that clients are given."""
        return f"http://{HOST}:{self._port}{_API}"

    @property
    def converter(self) -> dict[str, str]:
        """The options of Connect's converter; of its class, "" is the name."""
        own = ".apicurio.registry"
        return {
            "": "io.apicurio.registry.utils.converter.AvroConverter",
            f"{own}.url": f"http://{HOST}:{self._port}/apis/registry/v2",
            f"{own}.as-confluent": "true",
            f"{own}.use-id": "contentId",
        }

    def anew(self) -> None:
        """Replace it by an empty one at the same address."""
        self.kill()
        self._turn += 1
        self.start()

    def _choose_ports(self) -> None:
        self._port = free_port()

    def _launch(self) -> Child:
        data = self.folder / f"data-{self._turn}"
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": self._port,
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{data};WRITE_DELAY=0",
            # ids as Confluent's registry gives them: one for each content
            "apicurio.ccompat.use-canonical-hash": "false",
        }
        told = [f"-D{name}={value}" for name, value in settings.items()]
        return Child(
            [find_java(), *_OPTIONS, *told, "-jar", self._program / _JAR], log=self.log
        )

    def _ready(self) -> bool:
        connection = HTTPConnection(HOST, self._port, timeout=5)
        try:
            connection.request("GET", f"{_API}/subjects")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
