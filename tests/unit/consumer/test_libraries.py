"""An older library that the system's Python has is refused, by its name and place."""

import re
from types import ModuleType

import confluent_kafka
import pytest

from consumer import libraries
from tests.support.project.lowest_versions import project


def test_the_lowest_versions_are_those_that_pip_sees_to() -> None:
    needs = {}
    for need in project()["dependencies"]:
        name, lowest = re.split(r"(?:\[\w+\])?>=", need.partition(",")[0])
        needs[name.replace("-", "_")] = lowest
    found = {one.__name__: lowest for one, lowest in libraries.LOWEST.items()}
    assert {name: ".".join(map(str, lowest)) for name, lowest in found.items()} == {
        name: needs[name] for name in found
    }


def test_what_is_installed_is_new_enough_and_what_is_older_is_named() -> None:
    libraries.check(confluent_kafka, (2, 15))
    with pytest.raises(ImportError, match=r"confluent_kafka 99\.1 or later.*upgrade"):
        libraries.check(confluent_kafka, (99, 1))


def test_a_version_may_be_told_as_confluent_kafka_told_it_before() -> None:
    old = ModuleType("confluent_kafka")
    old.__file__ = "/usr/lib/python3/dist-packages/confluent_kafka/__init__.py"
    old.version = lambda: ("1.7.0", 0x1070000)  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match=r"dist-packages/confluent_kafka is 1\.7\.0:"):
        libraries.check(old, (2, 15))


def test_a_release_candidate_has_a_version_too() -> None:
    early = ModuleType("psycopg")
    early.__file__ = "/usr/lib/python3/dist-packages/psycopg/__init__.py"
    early.__version__ = "3.10rc1"  # type: ignore[attr-defined]
    libraries.check(early, (3, 3))
