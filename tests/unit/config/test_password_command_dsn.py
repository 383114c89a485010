"""A command inside of a connection string comes out as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.config.password_command_dsn import carry, take_out

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1)


@pytest.mark.parametrize(
    "text",
    [
        "host=db dbname=shop",
        "host=db options='-c a=b'",
        "postgresql://app@db/shop",
        "postgresql://app@db/shop?sslmode=verify-full",
        "mysql+pymysql://app@db/shop?charset=utf8mb4",
    ],
)
@given(command=WORDS)
def test_it_comes_out_as_it_went_in(text: str, command: list[str]) -> None:
    carried = carry(text, command)
    assert take_out(carried) == (text, command)
    assert carry(carried, ["another"]) == carried  # what went over a pipe


def test_without_one_nothing_is_carried() -> None:
    assert carry("host=db", []) == "host=db"
    assert take_out("host=db") == ("host=db", [])
