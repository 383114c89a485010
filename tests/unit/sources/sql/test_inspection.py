"""The first error that run would meet; and nothing is loaded before it is needed."""

import subprocess
import sys

from walstream.errors import ConfigError, Transient
from walstream.sources.sql.inspection import DatabaseInspection, TableInspection


def test_the_databases_own_problem_comes_before_those_of_its_tables() -> None:
    away, missing = Transient("away"), ConfigError("no such table")
    tables = {"t": TableInspection(), "u": TableInspection(problem=missing)}
    assert DatabaseInspection(tables, away).obstacle is away
    assert DatabaseInspection(tables).obstacle is missing
    assert DatabaseInspection({"t": TableInspection()}).obstacle is None


def test_a_command_that_asks_no_database_loads_no_sqlalchemy() -> None:
    load = "import sys, walstream.cli.main; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", load], check=True)
