"""Defaults of the options."""

from typing import get_args

from walstream.formats.debezium import options
from walstream.formats.debezium.binary import FORMS


def test_defaults_are_those_of_debezium() -> None:
    found = options.DebeziumOptions("app")
    modes = found.decimal, found.time, found.interval, found.hstore, found.binary
    assert modes == ("precise", "adaptive", "numeric", "json", "bytes")
    assert (found.unknown, found.money_digits, found.adjust) == (False, 2, "none")
    assert found.unavailable == "__debezium_unavailable_value"
    assert (found.deletes, found.add_prefix) == ("tombstone", "__")


def test_each_form_of_binary_is_written() -> None:
    assert set(get_args(options.Binary)) == FORMS.keys()
