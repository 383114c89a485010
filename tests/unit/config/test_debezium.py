"""[sinks.NAME.debezium]: defaults that its formats have."""

import pytest

from walstream.config.debezium import FORMATS, with_defaults


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_its_formats_have_debeziums_defaults(form: str) -> None:
    table = with_defaults({"kind": "kafka", "format": form})
    assert (table["tombstones"], table["on_truncate"]) == (True, "skip")


def test_what_is_written_counts() -> None:
    written = {"kind": "kafka", "format": "debezium", "on_truncate": "send"}
    assert with_defaults(written)["on_truncate"] == "send"


def test_a_sink_that_only_prints_has_no_tombstones() -> None:
    assert "tombstones" not in with_defaults({"kind": "log", "format": "debezium"})


def test_other_formats_stay_as_they_are() -> None:
    written = {"kind": "kafka", "format": "op"}
    assert with_defaults(written) is written
