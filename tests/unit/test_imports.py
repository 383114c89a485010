"""What a process loads before it needs it: a stream pays for no poll or backfill."""

import subprocess
import sys

import pytest

_LATE = {
    *("pyspark", "py4j", "sqlalchemy", "pymysql"),
    *("starlette", "uvicorn", "prometheus_client"),
}


@pytest.mark.parametrize(
    "module", ["walstream.worker", "walstream.cli.main", "walstream.supervisor"]
)
def test_no_large_library_is_loaded_before_it_is_needed(
    module: str,
) -> None:
    code = f"import sys, {module}; print(sorted({_LATE} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
