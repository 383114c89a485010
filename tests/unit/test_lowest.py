"""What walstream needs has bounds on both sides, and tests can be run on the lowest."""

import re

import pytest

from tests.lowest import constraints, needed, project


@pytest.mark.parametrize("need", needed(project()))
def test_what_is_needed_has_a_lowest_and_a_highest_version(need: str) -> None:
    assert re.fullmatch(r"[\w.-]+(\[\w+\])?>=[\d.]+,<\d+(\.\d+)?", need)


def test_each_is_pinned_to_its_lowest() -> None:
    wanted = ["psycopg==3.2.1", "jgo==3.0"]
    assert list(constraints(["psycopg[binary]>=3.2.1,<4", "jgo>=3.0,<4"])) == wanted
    with pytest.raises(ValueError, match="has no lower bound"):
        list(constraints(["orjson"]))
