"""How figures are written."""

from walstream.service.http.figures import duration, listed, plural, rate, size


def test_times_sizes_and_rates_are_short() -> None:
    assert [duration(s) for s in (None, 0.0, 0.004, 0.5, 14.2, 90.0, 7200.0)] == [
        *("-", "0.0 s", "4 ms", "0.5 s", "14 s", "1.5 min", "2.0 h"),
    ]
    assert [size(n) for n in (None, 0, 1536, 20 << 20)] == [
        *("-", "0 B", "1.5 KiB", "20 MiB"),
    ]
    assert [rate(r) for r in (None, 0.0, 1.25, 12345.6)] == ["-", "0", "1.2", "12,346"]


def test_names_are_listed_as_far_as_there_is_room() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert (plural(1, "source"), plural(2, "source")) == ("1 source", "2 sources")
