"""What a person sees of each change."""

import pytest

from tests.support.oracles import vectors
from walstream.cli.tail.change import read
from walstream.cli.tail.layout import plain
from walstream.cli.tail.screen import lines
from walstream.kafka.topic_reader import TopicRecord

HEAD = "2026-11-21T06:28:02.019Z "
AT = HEAD + "0/1B019A0 "
KEY = ' ["1"] '
SIX = b'{"table_name":"t","col_names":["id","v"],"lsn":28318112,"seq_id":6,"op":'


def change(value: bytes | None, key: bytes | None = b'["1"]') -> TopicRecord:
    return TopicRecord("topic", 3, 42, key, value, [], 1795242482019)


def shown(
    value: bytes | None, width: int | None = None, key: bytes | None = b'["1"]'
) -> str:
    return "\n".join(map(plain, lines(read(change(value, key)), width)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            vectors.OPS["insert"],
            AT + "#0 insert public.stock" + KEY + "id: 1, n: 9, note: NULL",
        ),
        (
            vectors.OPS["update"],
            AT + "#1 update public.stock" + KEY + r'note: NULL → "hé\"llo\n"',
        ),
        (
            vectors.OPS["delete"],
            AT + "#2 delete public.stock" + KEY + "id: 1, n: 9, note: t",
        ),
        (
            vectors.OPS["toast"],
            AT + "#0 update public.t" + KEY + "id: 1, n: 1, (absent: v)",
        ),
        (
            vectors.OPS["key only"],
            AT + "#1 delete public.t" + KEY + "id: 1, (absent: n, v)",
        ),
        (vectors.OPS["truncate"], AT + "#2 truncate s.t" + KEY + "partitions: 4"),
        (
            vectors.OPS["snapshot"],
            HEAD
            + "0/1B01930 #4294967303 insert snapshot s.t"
            + KEY
            + "id: 1, n: 1, v: x",
        ),
        (
            vectors.EVENT % (b"insert", b'{"a":369223,"b":"a"}'),
            HEAD + "0/1B017D8 insert test" + KEY + "a: 369223, b: a",
        ),
        (
            vectors.EVENT % (b"update", b'{"a":"null","b":null}'),
            HEAD + "0/1B017D8 update test" + KEY + 'a: "null", b: NULL',
        ),
        (
            vectors.TUNGSTEN % b"DELETE",
            HEAD + "0/1301 delete test.msg" + KEY + "msg: Hello Kafka, id: 2384726",
        ),
        (
            vectors.TXINFO,
            HEAD
            + "0/1301 transaction"
            + KEY
            + "txinfo_rowcount: 3, txinfo_rowcount_msg.msg: 1,"
            + " txinfo_rowcount_msg.msgsub: 2, end_lsn: 4900, xid: 7,"
            + " commit_time: 946684800000005,"
            + ' rows: {"msg.msg":{"0":1,"3":2}}, parked: 0',
        ),
        (
            vectors.ROW,
            HEAD
            + "topic[3]@42 insert processes"
            + KEY
            + "id: 3, pid: 30, name: n3, user: root, command: /bin/é",
        ),
        (None, HEAD + 'topic[3]@42 tombstone ["1"]'),
        (b"some text", HEAD + "topic[3]@42 text" + KEY + "some text"),
        (b"\xff\x00", HEAD + "topic[3]@42 bytes" + KEY + r"\xff\x00"),
        (b"", HEAD + "topic[3]@42 text" + KEY + '""'),
    ],
)
def test_each_format_in_a_line(value: bytes | None, expected: str) -> None:
    assert shown(value) == expected


def test_update_says_what_changed_and_names_what_nobody_knows() -> None:
    value = SIX + b'{"Update":[["1",null],["2","x"]]},"absent":{"old":["v"]}}'
    assert shown(value).endswith("id: 1 → 2, v: x")
    value = SIX + b'{"Update":[["1","x"],["1",null]]},"absent":{"new":["v"]}}'
    assert shown(value).endswith("nothing changed, (absent: v)")


def test_text_null_and_null_are_told_apart() -> None:
    value = SIX + b'{"Update":[["1","NULL"],["1",null]]}}'
    assert shown(value).endswith('v: "NULL" → NULL')


def test_long_values_are_shortened_where_they_differ() -> None:
    long = b"x" * 500
    value = SIX + b'{"Update":[["1","%ba"],["1","%bb"]]}}' % (long, long)
    assert shown(value).endswith(
        "v: (+480)…xxxxxxxxxxxxxxxxxxxxa → (+480)…xxxxxxxxxxxxxxxxxxxxb"
    )


def test_lines_keep_to_the_width_and_hang_under_their_beginning() -> None:
    assert shown(vectors.ROW, 80).splitlines() == [
        HEAD + 'topic[3]@42 insert processes ["1"] id: 3, pid: 30,',
        "    name: n3, user: root, command: /bin/é",
    ]


def test_full_shortens_nothing_and_leaves_nothing_out() -> None:
    value = vectors.EVENT % (b"insert", b'{"a":"%b"}' % (b"x" * 500))
    (line,) = lines(read(change(value)), None, full=True)
    assert plain(line) == (
        f"{HEAD}0/1B017D8 topic[3]@42 insert test{KEY}a: {'x' * 500},"
        " (Host: 127.0.0.1, Database: test, Timestamp: 2026-11-21T06:28:02.019132519Z,"
        " UUID: 5bdc360e-91a6-4062-9c7d-94cceabcc7ec)"
    )


def test_names_and_keys_cannot_drive_the_terminal_either() -> None:
    value = vectors.OPS["insert"].replace(b"stock", b"s\\u001b[2J")
    text = shown(value.replace(b'"n"', b'"n\\r\\n"'), key=b"\x1b]0;k\x07")
    assert text.isprintable()
    assert r"public.s\x1b[2J \x1b]0;k\x07 id: 1, n\r\n: 9" in text


@pytest.mark.parametrize(
    ("name", "style"), [("insert", "green"), ("update", "yellow"), ("delete", "red")]
)
def test_kinds_have_their_colours(name: str, style: str) -> None:
    (line,) = lines(read(change(vectors.OPS[name])), None)
    assert (name, style) in line


def test_old_value_is_red_and_new_one_green() -> None:
    value = SIX + b'{"Update":[["1","a"],["1","b"]]}}'
    (line,) = lines(read(change(value)), None)
    assert ("a", "red") in line
    assert ("b", "green") in line


def test_record_without_time_or_key_is_shown() -> None:
    record = TopicRecord("topic", 0, 7, None, None, [], None)
    assert [plain(line) for line in lines(read(record), 80)] == [
        "(no time) topic[0]@7 tombstone"
    ]
