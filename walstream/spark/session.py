"""The Spark of this process: started when first needed, as configured, and once.

Where one runs already it is used as it is. Properties go to the JVM in a file that only
its owner reads, never as arguments; the JVM listens on loopback alone when it runs the
tasks itself. It ends with this process: its stdin is our pipe.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from string import ascii_letters, digits
from subprocess import DEVNULL
from typing import IO, TYPE_CHECKING, Any, Final

import structlog

from walstream.config.secret_keys import HIDDEN_WORDS, MASK, is_secret_key
from walstream.config.spark import LOCAL, spark_defaults
from walstream.errors import ConfigError, Repair, Transient
from walstream.spark.java import INSTALL, LOWEST_VERSION, java_version

if TYPE_CHECKING:
    from pyspark import SparkContext

CONNECTIONS: Final = 16
_THROWN: Final = re.compile(r'Exception in thread "main" (?:[\w.]+: )?(.*)')
_PYTHON: Final = "spark.pyspark.python"
_SPECULATION: Final = "spark.speculation"
_PACKAGED: Final = "/opt/walstream"  # where deb and rpm have their environment
_LAST_LINES: Final = 5
_PLAIN: Final = frozenset(ascii_letters + digits + "._-/,*[]@")
_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.app.name": "walstream",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.scheduler.mode": "FAIR",
    # its own knows no account.key: event log and UI would show it
    "spark.redaction.regex": f"(?i){HIDDEN_WORDS}",
}
_LOCAL_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",  # no row passes through it: so it
    # need not become fast, only be there soon and small
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_CLUSTER_DEFAULTS: Final[Mapping[str, str]] = {
    # what encrypts does not step down to what does not
    "spark.network.crypto.saslFallback": "false",
}
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a Spark session."""

    master: str = "local[*,4]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    connections: int = CONNECTIONS  # to the database, at most, at a time


@dataclass(frozen=True, slots=True)
class SparkRuntime:
    """A Spark that runs."""

    context: "SparkContext"
    connections: int
    slots: int | None  # tasks at a time; None: the cluster decides
    pool: str = "walstream"  # of Spark's scheduler: pools share the cores evenly

    @property
    def local(self) -> bool:
        """Return whether tasks run on this machine, as children of this process."""
        return self.slots is not None

    @property
    def alive(self) -> bool:
        """Return whether its JVM runs, if that is ours."""
        gateway = self.context._gateway  # noqa: SLF001 - no public way to ask
        process = getattr(gateway, "proc", None)
        return process is None or process.poll() is None

    def stop(self) -> None:
        self.context.stop()


def check_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raise ConfigError unless Spark would find a Java that it runs on."""
    home = environment.get("JAVA_HOME", "")
    on_path = shutil.which("java", path=environment.get("PATH"))
    java = Path(home, "bin", "java") if home else on_path and Path(on_path)
    version = java_version(java) if java else 0
    if version < LOWEST_VERSION:
        where = f"{java} is {version or 'no Java'}" if java else "there is none"
        raise ConfigError(
            f"Spark needs Java {LOWEST_VERSION} or later, and {where}",
            hint=INSTALL,
            repair=Repair(then=INSTALL),
        )


def check_pyspark() -> None:
    """Raise ConfigError when pyspark is not installed; loads nothing of it."""
    if find_spec("pyspark") is None:
        install = "pip install 'walstream[spark]'"
        if sys.prefix == _PACKAGED:
            install = "install the package walstream-spark"
        raise ConfigError(
            "polling and a large backfill need Spark: pyspark is not installed",
            hint=install,
            repair=Repair(then=install),
        )


def start(settings: Settings) -> SparkRuntime:
    """Return the Spark of this process; start one where there is none."""
    check_pyspark()
    check(settings)
    from pyspark import SparkContext  # noqa: PLC0415 - nothing of it before it is needed

    context = SparkContext._active_spark_context  # noqa: SLF001 - no public way to ask
    if context is None:
        check_java()
        context = _start(settings)
    elif context.getConf().get(_SPECULATION, "false") == "true":
        raise ConfigError("the running Spark speculates: rows would be sent twice")
    return SparkRuntime(context, settings.connections, slots(str(context.master)))


def check(settings: Settings) -> None:
    """Refuse what chunks cannot run under."""
    if settings.conf.get(_SPECULATION, "false").lower() == "true":
        raise ConfigError(
            f"spark.conf: {_SPECULATION} would send rows twice: remove it"
        )
    if settings.master.startswith("sc://"):
        raise ConfigError(
            "spark.master: Spark Connect cannot run RDDs: write local[*,4], "
            "spark://…, yarn or k8s://…"
        )


def slots(master: str) -> int | None:
    """Return the tasks that run at a time; None where a cluster decides."""
    found = LOCAL.fullmatch(master)
    if found is None:
        return None
    cores = found["cores"]
    return (os.cpu_count() or 1) if cores == "*" else int(cores or 1)


def _start(settings: Settings) -> "SparkContext":
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - likewise
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - likewise
    from pyspark.errors import (  # noqa: PLC0415 - likewise
        PySparkException,
        PySparkRuntimeError,
    )
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - likewise

    given = properties(settings)
    _log.debug("Spark starts", command=submit_line(given))
    os.environ["PYSPARK_PYTHON"] = given.get(_PYTHON) or os.environ.get(
        "PYSPARK_PYTHON", sys.executable
    )
    if slots(settings.master) is not None:
        # Spark looks its own name up, even where no other machine is to reach it
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryFile() as said, _submitted(given):
        try:
            gateway: Any = launch_gateway(  # type: ignore[no-untyped-call]
                popen_kwargs={"stdout": DEVNULL, "stderr": said, "cwd": "/"}
            )
            # the properties as the JVM was given them
            return SparkContext(conf=SparkConf(_jvm=gateway.jvm), gateway=gateway)
        except PySparkRuntimeError:
            if words := _last(said):
                raise ConfigError(f"Spark does not start: {words}") from None
            raise _killed() from None
        except (Py4JJavaError, PySparkException) as error:
            raise ConfigError(f"Spark does not start: {_reason(error)}") from None
        except (Py4JError, OSError):
            raise _killed() from None


def _reason(error: Exception) -> str:
    """Return it in one line, in Java's words where they are Java's."""
    thrown = getattr(error, "java_exception", None)
    text = str(thrown.getMessage() if thrown is not None else error)
    return text.partition("\n")[0]


def _last(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    thrown = [found[1] for line in lines if (found := _THROWN.match(line))]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    thrown += causes[-1:]
    return " / ".join(thrown or lines[-_LAST_LINES:])


def _killed() -> Transient:
    """Make the error of a JVM that ended without a word."""
    return Transient(
        "Spark does not start: its Java process ended",
        hint="it may have been killed, or out of memory; walstream starts it again",
    )


def properties(settings: Settings) -> dict[str, str]:
    """Join what is configured and what is set else, below spark-defaults.conf."""
    defaults = dict(_DEFAULTS)
    local = slots(settings.master) is not None
    defaults |= _LOCAL_DEFAULTS if local else _CLUSTER_DEFAULTS
    for name in spark_defaults(os.environ):
        defaults.pop(name, None)
    return {
        **defaults,
        **settings.conf,
        "spark.master": settings.master,
        _SPECULATION: "false",
    }


@contextmanager
def _submitted(given: Mapping[str, str]) -> Iterator[None]:
    """Let spark-submit read the properties from a file that nobody else reads."""
    before = os.environ.get("PYSPARK_SUBMIT_ARGS")
    with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
        file.writelines(
            f"{_escape(key)}={_escape(text)}\n" for key, text in given.items()
        )
        file.flush()
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            f"--properties-file {quote(file.name)} --load-spark-defaults pyspark-shell"
        )
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYSPARK_SUBMIT_ARGS"]
            else:
                os.environ["PYSPARK_SUBMIT_ARGS"] = before


def _escape(text: str) -> str:
    """Write for java.util.Properties, which knows code units by their number."""
    units = text.encode("utf-16-be")
    codes = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(
        chr(code) if chr(code) in _PLAIN else f"\\u{code:04x}" for code in codes
    )


def submit_line(given: Mapping[str, str]) -> str:
    """Write the spark-submit that has the same properties, secrets masked."""
    shown = (
        f"--conf {quote(f'{key}={MASK if is_secret_key(key) else text}')}"
        for key, text in sorted(given.items())
        if key != "spark.master"
    )
    return f"spark-submit --master {quote(given['spark.master'])} {' '.join(shown)}"
