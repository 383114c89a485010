"""Options of messages that go with another one."""

from typing import Any

import pytest

from walstream.config.message_rules import check_messages
from walstream.config.messages import Messages


@pytest.mark.parametrize(
    ("sink_format", "told", "path"),
    [
        ("op", {}, []),
        ("op", {"prefixes": ["a"], "key": "/id"}, []),
        ("debezium", {"prefixes": ["a"]}, []),
        ("debezium", {"prefixes": ["a"], "form": "content", "key": "/id"}, []),
        ("op", {"key": "/id"}, ["messages"]),
        ("op", {"prefixes": ["a"], "form": "debezium"}, ["messages.form"]),
        ("debezium", {"prefixes": ["a"], "key": "/id"}, ["messages.key"]),
        ("op", {"prefixes": ["walstream"]}, ["messages.prefixes"]),
        ("op", {"prefixes": ["walstream.backfill"]}, ["messages.prefixes"]),
        ("op", {"prefixes": ["*"]}, []),
    ],
)
def test_what_has_no_effect_is_named(
    sink_format: str, told: dict[str, Any], path: list[str]
) -> None:
    found = check_messages(("messages",), Messages(**told), sink_format)
    assert [".".join(map(str, one.path)) for one in found] == path
