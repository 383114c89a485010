"""librdkafka.c, compiled from this tree, as a module."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).parents[3]
_BUILD: Final = ROOT / "packaging" / "hatch_build.py"
_NAME: Final = "walstream.kafka.librdkafka"


def compile_native(folder: Path, flags: str = "", source: str | None = None) -> Path:
    """Compile it, or another source of the same name; return the file."""
    root = ROOT
    if source is not None:
        root = folder / "changed"
        (root / "walstream/kafka").mkdir(parents=True)
        (root / "walstream/kafka/librdkafka.c").write_text(source, "utf-8")
    made = folder / "librdkafka.abi3.so"
    build = "import runpy, sys, pathlib; runpy.run_path(sys.argv[1])"
    build += "['compile_extension'](*map(pathlib.Path, sys.argv[2:]))"
    subprocess.run(
        [sys.executable, "-c", build, str(_BUILD), str(root), str(made)],
        env={**os.environ, "CFLAGS": flags},
        check=True,
    )
    return made


def load_native(made: Path) -> ModuleType:
    """Load such a file."""
    spec = importlib.util.spec_from_file_location(_NAME, made)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
