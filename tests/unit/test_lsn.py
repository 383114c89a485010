"""LSNs as PostgreSQL prints and reads them."""

import pytest

from walstream.lsn import INVALID, MAX, parse, show


@pytest.mark.parametrize(
    ("lsn", "text"),
    [
        (INVALID, "0/0"),
        (0x16B3748, "0/16B3748"),
        (1 << 32, "1/0"),
        (0xABC_0000_00DE, "ABC/DE"),
        (MAX, "FFFFFFFF/FFFFFFFF"),
    ],
)
def test_lsn_is_shown_as_postgresql_does_and_read_back(lsn: int, text: str) -> None:
    assert show(lsn) == text
    assert parse(text) == lsn


@pytest.mark.parametrize("text", ["0/00000000", " 0/16b3748\n", "00000000/0"])
def test_other_spellings_of_an_lsn_are_read(text: str) -> None:
    assert parse(text) in (0, 0x16B3748)


@pytest.mark.parametrize(
    "text", ["", "/", "0", "0/", "/0", "0/g", "123456789/0", "0/123456789", "0/1/2"]
)
def test_what_is_no_lsn_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(ValueError, match="as in 0/16B3748"):
        parse(text)


@pytest.mark.parametrize("text", ["-1/0", "0/+1", "0/1_0", "0/ 1"])
def test_what_only_python_takes_for_a_number_is_no_lsn(text: str) -> None:
    with pytest.raises(ValueError, match="as in 0/16B3748"):
        parse(text)
