"""What columns of then are called now, and what no later try would read."""

from typing import Any, cast

import psycopg
import pytest

from walstream.errors import HistoryError
from walstream.op import Kind, ReplicationOp, Table
from walstream.postgres.toast import names_now, read
from walstream.row import UNCHANGED


@pytest.mark.parametrize(
    ("then", "attributes", "now"),
    [
        pytest.param("iv", "iv", "iv", id="the same"),
        pytest.param("iv", "iw", "iw", id="renamed"),
        pytest.param("iab", "iba", "iba", id="swapped"),
        pytest.param("iv", "ivc", "iv", id="one came"),
        pytest.param("iv", "iwc", "iw", id="renamed, and one came"),
        pytest.param("iv", "iwv", "iw", id="renamed, and one of its name came"),
        pytest.param("iv", "i-v", "iv", id="one went long ago"),
        pytest.param("iav", "i-v", "i-v", id="one went since"),
        pytest.param("iab", "ib-", "ib-", id="renamed to one that went"),
        pytest.param("iv", "i-w", None, id="went and came, or renamed"),
        pytest.param("iv", "i-wv", None, id="one went, and the name may be another's"),
    ],
)
def test_columns_are_known_by_place_or_by_name(
    then: str, attributes: str, now: str | None
) -> None:
    assert called(then, attributes) == now


@pytest.mark.parametrize(
    ("then", "attributes", "now"),
    [
        pytest.param("iv", "iv", "iv", id="the same"),
        pytest.param("iv", "iav", "iv", id="one is not published"),
        pytest.param("iav", "iv", "i-v", id="one went since"),
        pytest.param("iv", "iaw", None, id="renamed, and one is not published"),
    ],
)
def test_columns_of_which_not_all_are_published_are_known_by_name(
    then: str, attributes: str, now: str | None
) -> None:
    assert called(then, attributes, in_part=True) == now


def called(then: str, attributes: str, *, in_part: bool = False) -> str | None:
    """Write names of one letter as one word, `-` where a column is dropped."""
    all_ever = [None if one == "-" else one for one in attributes]
    found = names_now(then, all_ever, in_part=in_part)
    return None if found is None else "".join(found[one] or "-" for one in then)


class Unable:
    """A connection to a server that compares no values of the table's key."""

    def execute(self, query: object, _: object = None) -> "Unable":
        if not isinstance(query, str):
            raise psycopg.errors.FeatureNotSupported("input of such values")
        self.query = query
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        if "pg_locks" in self.query or "pg_index" in self.query:
            return None
        return "public", "t", "us", ["i", "v"], False, [], [], True


def test_a_key_that_the_server_cannot_compare_stops() -> None:
    table = Table("public", "t", ("i", "v"), (0,))
    op = ReplicationOp(Kind.UPDATE, table, 5, 3, new=["1", UNCHANGED])
    with pytest.raises(HistoryError, match=r"'public\.t' .* cannot compare .* key"):
        read(cast("Any", Unable()), 16384, op, {"i": "1"}, ["v"])
