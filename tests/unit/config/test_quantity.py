"""Durations and sizes: read, refused, written again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.config.quantity import (
    DURATION_UNITS,
    LARGEST_BYTES,
    byte_size,
    duration,
    show_duration,
    show_size,
)
from walstream.telemetry.human import (
    SIZE_UNITS,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0.0),
        (0, 0.0),
        ("500ms", 0.5),
        ("20s", 20.0),
        ("1min", 60.0),
        ("1.5h", 5400.0),
        ("2 d", 172800.0),
    ],
)
def test_durations_are_read_in_seconds(written: object, seconds: float) -> None:
    assert duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [("0", 0), (0, 0), ("1B", 1), ("1.5KiB", 1536), ("64MiB", 67108864)],
)
def test_sizes_are_read_in_bytes(written: object, size: int) -> None:
    assert byte_size(written) == size


@pytest.mark.parametrize(
    "written",
    [
        "",
        "5",
        5,
        "5m",
        "5M",
        "-5s",
        "5 s s",
        "1h30min",
        "s",
        "5S",
        "٣s",
        "1e3s",
        True,
        None,
        [],
        "99999d",
        "1.2345s",
        "9" * 40 + "s",
        "5s\n",
    ],
)
def test_nonsense_is_no_duration(written: object) -> None:
    with pytest.raises(ValueError, match=r"20s|3650d"):
        duration(written)


@pytest.mark.parametrize(
    "written", ["", "64", 64, "64MB", "64M", "-1MiB", "0.5B", "1.1KiB", "9999999TiB"]
)
def test_nonsense_is_no_size(written: object) -> None:
    with pytest.raises(ValueError, match=r"MiB|TiB"):
        byte_size(written)


@given(
    st.decimals(min_value=0, max_value=3650, places=3),
    st.sampled_from([*DURATION_UNITS]),
)
def test_a_duration_is_written_so_that_it_reads_the_same(
    number: object, unit: str
) -> None:
    seconds = duration(f"{number}{unit}")
    assert duration(show_duration(seconds)) == seconds


@given(st.integers(min_value=0, max_value=LARGEST_BYTES))
def test_a_size_is_written_so_that_it_reads_the_same(size: int) -> None:
    assert byte_size(show_size(size)) == size


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(written: str) -> None:
    for read in (duration, byte_size):
        try:
            quantity = read(written)
        except ValueError:
            continue
        assert quantity >= 0


def test_the_largest_unit_that_divides_is_written() -> None:
    assert [show_duration(s) for s in (0.0, 0.5, 20.0, 90.0, 7200.0)] == [
        "0",
        "500ms",
        "20s",
        "90s",
        "2h",
    ]
    assert show_size(10 * SIZE_UNITS["GiB"]) == "10GiB"
    assert show_size(1025) == "1025B"
