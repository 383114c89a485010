"""Spark's own settings: masters on this machine, spark-defaults.conf.

Only `spark/` may load pyspark, and the configuration has to know both before anything
starts.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\*|\d+)(?:,\s*\d+)?\])?")
_PROPERTY: Final = re.compile(r"\s*(spark\.[^\s=:]+)[\s=:]+(.*)")


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the properties that spark-defaults.conf sets; {} without one."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (home and str(Path(home, "conf")))
    if not folder:
        return {}
    try:
        text = Path(folder, "spark-defaults.conf").read_text("utf-8", errors="replace")
    except OSError:
        return {}
    found = (_PROPERTY.match(line) for line in text.splitlines())
    return {one[1]: one[2].strip() for one in found if one}
