"""Parameters of which `make test` takes some, and `make fault` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def shortened(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return all values, those that are not kept marked to run by `make fault`."""
    given = list(values)
    assert all(one in given for one in kept), "what is kept is there"
    return [
        one if one in kept else pytest.param(one, marks=pytest.mark.fault_long)
        for one in given
    ]
