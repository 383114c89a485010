"""Version of Java, as it prints it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from walstream.errors import ConfigError

LOWEST_VERSION: Final = 17
INSTALL: Final = f"apt-get install openjdk-{LOWEST_VERSION}-jre-headless"


def java_version(java: Path) -> int:
    """Its feature number (8 for 1.8.0), or 0 where it does not say."""
    try:
        answer = subprocess.run(  # noqa: S603 - the operator's own JAVA_HOME or PATH
            [java, "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else 0


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
