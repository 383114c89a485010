"""Everything that can be known of a PostgreSQL source before it is run.

What would stop `run` is asked with the functions that `run` asks.
"""

from walstream.postgres.checks.inspection import inspect
from walstream.postgres.checks.wanted import Inspection, Wanted

__all__ = ["Inspection", "Wanted", "inspect"]
