"""`tail --format`: each token of kcat, escapes, and what is refused."""

import pytest

from walstream.cli.tail.template import Template
from walstream.errors import ConfigError
from walstream.kafka.topic_reader import TopicRecord

RECORD = TopicRecord(
    "shop.orders",
    3,
    41,
    b"k\xff",
    b"value",
    [("a", b"1"), ("b", None)],
    1_700_000_000_000,
)
TOMBSTONE = TopicRecord("t", 0, 0, None, None, [], None)


@pytest.mark.parametrize(
    ("text", "of_record", "of_tombstone"),
    [
        ("%t %p %o", b"shop.orders 3 41", b"t 0 0"),
        (r"%k\t%v\n", b"k\xff\tvalue\n", b"\t\n"),
        ("%s|%S|%K", b"value|5|2", b"|-1|-1"),
        ("%T %h;", b"1700000000000 a=1,b=NULL;", b"-1 ;"),
        (r"100%%\x41\\\0\r é", b"100%A\\\0\r \xc3\xa9", b"100%A\\\0\r \xc3\xa9"),
        ("", b"", b""),
    ],
)
def test_tokens_and_escapes(text: str, of_record: bytes, of_tombstone: bytes) -> None:
    assert Template(text).render(RECORD) == of_record
    assert Template(text).render(TOMBSTONE) == of_tombstone


@pytest.mark.parametrize(
    ("text", "named"),
    [("%z", "%z"), ("%", "%"), ("a\\", "\\"), (r"\q", r"\q"), (r"\x4", r"\x")],
)
def test_what_does_not_exist_is_refused(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Template(text)
    assert str(refused.value.args[0]).endswith(named)
    assert refused.value.hint
