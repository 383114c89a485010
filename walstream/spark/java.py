"""How new a Java is: what it prints about itself."""

import re
import subprocess
from pathlib import Path
from typing import Final

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
