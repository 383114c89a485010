"""What a process loads before it needs it: a stream pays for no poll or backfill."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["walstream.worker", "walstream.cli.main"])
def test_neither_spark_nor_sqlalchemy_is_loaded_before_it_is_needed(
    module: str,
) -> None:
    code = (
        f"import sys, {module}; "
        "print(sorted({'pyspark', 'py4j', 'sqlalchemy', 'pymysql'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
