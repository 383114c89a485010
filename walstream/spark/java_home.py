"""Finds the Java that Kafka needs."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from walstream.errors import ConfigError
from walstream.spark.java import INSTALL, LOWEST_VERSION, java_version


def find_java() -> Path:
    """JAVA_HOME's, else the one on the PATH; the first that is new enough."""
    seen = []
    for java in _candidates():
        version = java_version(java)
        if version >= LOWEST_VERSION:
            return java
        seen.append(f"{java} is {version or 'no Java'}")
    found = f" ({', '.join(seen)})" if seen else ""
    raise ConfigError(f"Java {LOWEST_VERSION} or later is needed{found}: {INSTALL}")


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)


def main() -> None:
    """Answer the Makefile, which asks before it installs anything."""
    try:
        find_java()
    except ConfigError as error:
        sys.exit(str(error))
