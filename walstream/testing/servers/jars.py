"""Kafka's class path: from Maven coordinates once, then from memory.

The list of files is kept in the user's cache, so that a second use needs no network.
jgo's own environments are passed over: to sort jars it fetches a whole JDK, and it
takes an environment whose making was interrupted for a good one.

Nothing is run that this release does not know: kafka.sha256 has each jar's hash, as
`sha256sum -c` reads them.
"""

import fcntl
import hashlib
import logging
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from walstream.errors import ConfigError, Transient

VERSION = "4.3.1"
_COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    # or Kafka logs nothing; "!": the versions that its parent manages are not Kafka's
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4!",
)
_KNOWN = Path(__file__).with_name("kafka.sha256")
_TRIES = 2  # the second after throwing away what an interrupted download left

_log = logging.getLogger(__name__)


def kafka_class_path(memory: Path | None = None) -> list[Path]:
    """Every jar of a broker, in this machine's Maven repository: those we know."""
    jars = _class_path(memory)
    verify(jars, known())
    return jars


def known(path: Path = _KNOWN) -> dict[str, str]:
    """Read what each jar's SHA-256 has to be, by its file's name."""
    rows = (line.split() for line in path.read_text("utf-8").splitlines())
    return {name: sha256 for sha256, name in rows}


def verify(jars: list[Path], hashes: Mapping[str, str]) -> None:
    """Raise ConfigError for the first jar that is not the one that is known."""
    for jar in jars:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        wanted = hashes.get(jar.name)
        if found != wanted:
            known_as = f"not {wanted}" if wanted else "and walstream knows none of it"
            raise ConfigError(
                f"Kafka {VERSION}: {jar} is not the file published under that name: "
                f"its SHA-256 is {found}, {known_as}",
                hint=f"rm '{jar}' and try again; where it comes back so, a mirror or a "
                "proxy on the way to Maven Central changes it",
            )


def _class_path(memory: Path | None) -> list[Path]:
    memory = memory or _cache() / f"kafka-{VERSION}.jars"
    if remembered := recall(memory):
        return remembered
    memory.parent.mkdir(parents=True, exist_ok=True)
    with memory.with_suffix(".lock").open("w") as lock:
        # jgo refuses to write a jar that another process has just brought
        fcntl.flock(lock, fcntl.LOCK_EX)
        return recall(memory) or _fetch_whole(memory)


def recall(memory: Path) -> list[Path]:
    """Read the remembered jars: none unless all are still there, and whole."""
    try:
        jars = [Path(line) for line in memory.read_text("utf-8").splitlines()]
    except OSError:
        return []
    return jars if all(map(zipfile.is_zipfile, jars)) else []


def remember(memory: Path, jars: list[Path]) -> None:
    """Write them down in one step: others may read meanwhile."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    new = memory.with_name(f"{memory.name}.{os.getpid()}")
    new.write_text("".join(f"{jar}\n" for jar in jars), "utf-8")
    new.replace(memory)


def _fetch_whole(memory: Path) -> list[Path]:
    _log.info("fetching Kafka", extra={"version": VERSION})
    for _ in range(_TRIES):
        jars = _fetch()
        damaged = [jar for jar in jars if not zipfile.is_zipfile(jar)]
        if not damaged:
            remember(memory, jars)
            return jars
        for jar in damaged:
            jar.unlink()
    raise Transient(f"Kafka {VERSION}: {damaged[0].name} arrives damaged")


def _fetch() -> list[Path]:
    try:
        import jgo  # noqa: PLC0415 - of the extra "demo", and slow to import
    except ImportError as error:
        raise ConfigError(
            "a throw-away Kafka needs the package jgo",
            hint="pip install 'walstream[demo]'",
        ) from error
    try:
        artifacts = jgo.resolve("+".join(_COORDINATES))
        return [artifact.resolve() for artifact in artifacts]
    except (OSError, RuntimeError, ValueError) as error:
        raise Transient(
            f"Kafka {VERSION} cannot be fetched from Maven: {error}",
            hint="try again with a network; the jars are then kept in ~/.m2",
        ) from error


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "walstream")
