"""Compiles walstream/kafka/librdkafka.c for a wheel; one file serves each Python 3.

It takes a C compiler, as mypyc does. A pure wheel delivers through confluent-kafka.
CFLAGS is respected: a build under ASan adds -fsanitize=address.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "walstream/kafka/librdkafka.c"
_MADE = "walstream/kafka/librdkafka.abi3.so"


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling's hook, enabled as that of mypyc is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile it beside the sources that are built, and take it along."""
        del version
        made = Path(tempfile.mkdtemp(prefix="walstream-build-")) / Path(_MADE).name
        compile_extension(Path(self.root), made)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(made)] = _MADE


def compile_extension(root: Path, made: Path) -> None:
    """Compile the extension of a checkout into a file."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    flags = [
        "-O2",
        "-g0",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-fvisibility=hidden",
    ]
    shared = ["-shared"]
    if sys.platform == "darwin":
        shared = ["-bundle", "-undefined", "dynamic_lookup"]
    subprocess.run(  # noqa: S603 - the compiler of this machine
        [
            *shlex.split(compiler),
            *flags,
            *shlex.split(os.environ.get("CFLAGS", "")),
            *shared,
            f"-I{sysconfig.get_path('include')}",
            f"-ffile-prefix-map={root}=.",
            *("-o", str(made), str(root / _SOURCE)),
            *([] if sys.platform == "darwin" else ["-ldl"]),
        ],
        check=True,
    )


if __name__ == "__main__":  # packaging/hatch_build.py: into the checkout, for its tests
    here = Path(__file__).resolve().parent.parent
    compile_extension(here, here / _MADE)
