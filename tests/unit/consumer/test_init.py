"""What an application imports."""

import subprocess
import sys


def test_the_library_loads_neither_spark_nor_lmdb_nor_a_command_line() -> None:
    code = (
        "import sys, consumer\n"
        "heavy = {'pyspark', 'lmdb', 'typer', 'pydantic', 'sqlalchemy', 'structlog'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print(all(hasattr(consumer, name) for name in consumer.__all__))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\nTrue\n"
