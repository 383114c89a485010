"""Two clocks, compared over an answer that took its time."""

import pytest

from walstream.postgres.checks.clock import of_clocks


@pytest.mark.parametrize(
    ("before", "theirs", "after"),
    [
        (100.0, 100.0, 100.1),
        (100.0, 102.0, 100.1),
        (100.0, 98.1, 100.1),
        (100.0, 109.0, 130.0),  # a slow answer says nothing
    ],
)
def test_clocks_that_may_agree_are_not_named(
    before: float, theirs: float, after: float
) -> None:
    assert not list(of_clocks(before, theirs, after))


@pytest.mark.parametrize(
    ("theirs", "says"), [(105.0, "4.9 s ahead of"), (97.0, "3.0 s behind")]
)
def test_clocks_apart_are_named_with_the_least_that_they_are(
    theirs: float, says: str
) -> None:
    (finding,) = of_clocks(100.0, theirs, 100.1)
    assert says in finding.what
    assert "chrony" in finding.repair.then
