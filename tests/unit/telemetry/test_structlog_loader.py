"""structlog comes without rich, unless the program had either of them before."""

import subprocess
import sys

import pytest

_LOAD = (
    "from walstream.telemetry.structlog_loader import load_structlog; load_structlog();"
)


@pytest.mark.parametrize(
    ("before", "has_rich"),
    [("", False), ("import rich;", True), ("import structlog;", True)],
)
def test_only_who_had_neither_goes_without(before: str, has_rich: bool) -> None:
    code = f"{before}{_LOAD} import rich, structlog; print(structlog.dev.rich is rich)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{has_rich}\n"
