"""librdkafka.c under AddressSanitizer and UBSan, called in any order with anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.compiled_form import needs_a_compiler
from tests.support.programs.native_module import ROOT, compile_native

_FLAGS = (
    "-g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
)
_SOURCE = ROOT / "walstream/kafka/librdkafka.c"
_SECONDS = float(os.environ.get("WALSTREAM_TEST_ABUSE_SECONDS") or 10)
_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or 1)


def library(name: str) -> str:
    found = subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"gcc has no {name}")
    return found


def abused(made: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    preload = f"{library('libasan.so')} {library('libubsan.so')}"
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.support.programs.native_abuse"),
            *(str(made), str(_SEED), str(seconds)),
        ],
        env={
            **os.environ,
            "LD_PRELOAD": preload,
            "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps much
            "PYTHONMALLOC": "malloc",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.mark.takes(20)
def test_nothing_is_used_that_is_not_there(tmp_path: Path) -> None:
    needs_a_compiler()
    done = abused(compile_native(tmp_path, _FLAGS), _SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    said = re.match(r"(\d+) calls, (\d+) refused, (\d+) delivered, (\d+)", done.stdout)
    assert said is not None
    assert all(int(one) > 100 for one in said.groups()), done.stdout


@pytest.mark.takes(20)
def test_a_count_that_nobody_holds_is_noticed(tmp_path: Path) -> None:
    """So the sanitizers are on: else the test above could not fail."""
    needs_a_compiler()
    source = _SOURCE.read_text("utf-8")
    held = "    Py_INCREF((PyObject *)count);\n    count->previous = NULL;"
    let_go = "    Py_DECREF((PyObject *)count);\n}\n\n/* --- Producer"
    assert held in source
    assert let_go in source
    source = source.replace(held, "    count->previous = NULL;")
    source = source.replace(let_go, "}\n\n/* --- Producer")
    done = abused(compile_native(tmp_path, _FLAGS, source), _SECONDS)
    assert done.returncode != 0
    assert "heap-use-after-free" in done.stderr
