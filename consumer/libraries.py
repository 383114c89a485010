"""Versions of the libraries that the consumer needs, looked at when it is imported.

pip sees to them. But where they are bundled for the system's Python, its own packages
come first, and may be older: one message says which, and not one for each function that
they lack.
"""

import re
from pathlib import Path
from types import ModuleType
from typing import Final

import confluent_kafka
import orjson
import psycopg

LOWEST: Final = {confluent_kafka: (2, 15), orjson: (3, 10), psycopg: (3, 3)}


def check(library: ModuleType, lowest: tuple[int, int]) -> None:
    """Raise ImportError if a library is older."""
    # confluent_kafka of before 2 has a function alone, which returns a pair
    told = getattr(library, "__version__", None) or library.version()[0]
    found = tuple(int(part) for part in re.findall(r"\d+", str(told))[:2])
    if found < lowest:
        name, where = library.__name__, Path(str(library.__file__)).parent
        raise ImportError(
            f"the consumer library needs {name} {'.'.join(map(str, lowest))} or later, "
            f"and {where} is {told}: upgrade or remove that one, or install "
            "walstream-consumer in a virtual environment",
            name=name,
        )


for _library, _lowest in LOWEST.items():
    check(_library, _lowest)
