"""What columns of then are called now."""

import pytest

from walstream.postgres.toasted import names_now


@pytest.mark.parametrize(
    ("then", "attributes", "now"),
    [
        pytest.param("iv", "iv", "iv", id="the same"),
        pytest.param("iv", "iw", "iw", id="renamed"),
        pytest.param("iab", "iba", "iba", id="swapped"),
        pytest.param("iv", "ivc", "iv", id="one came"),
        pytest.param("iv", "i-v", "iv", id="one went long ago"),
        pytest.param("iav", "i-v", "i-v", id="one went since"),
        pytest.param("iv", "iav", "iv", id="one is not published"),
        pytest.param("iv", "i-w", None, id="went and came, or renamed"),
        pytest.param("iv", "iwc", None, id="renamed, and one came"),
        pytest.param("iv", "iaw", None, id="renamed, and one is not published"),
    ],
)
def test_columns_are_known_by_name_or_by_place(
    then: str, attributes: str, now: str | None
) -> None:
    found = names_now(then, [None if one == "-" else one for one in attributes])
    names = None if now is None else [None if one == "-" else one for one in now]
    assert found == (None if names is None else dict(zip(then, names, strict=True)))
