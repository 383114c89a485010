"""Numbers of fields over any history of a table's columns."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf.message import (
    ProtoField,
    ProtoFile,
    ProtoMessage,
)
from walstream.formats.encodings.protobuf.numbering import covers, number
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto

COLUMNS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "a_1", "a1", "Point"]),
    st.sampled_from(["int32", "string", "Row", "Other"]),
    max_size=6,
).filter(lambda columns: not {"a_1", "a1"} <= columns.keys())  # refused before
HISTORIES = st.lists(COLUMNS, min_size=1, max_size=8)


def shape(columns: dict[str, str]) -> ProtoFile:
    """Return a file of these fields; some of its messages are declared within it."""
    inner = ProtoField("x", "int32")
    return ProtoFile(
        "a.b",
        (
            ProtoMessage(
                "Value",
                tuple(ProtoField(n, t, "optional") for n, t in columns.items()),
                tuple(
                    ProtoMessage(name, (inner,))
                    for name in ("Row", "Other")
                    if name in columns.values()
                ),
            ),
        ),
    )


@given(history=HISTORIES, keep=st.booleans())
def test_a_number_is_of_one_name_for_ever(
    history: list[dict[str, str]], keep: bool
) -> None:
    versions: list[ProtoFile] = []
    names: dict[int, str] = {}
    for columns in history:
        wanted = shape(columns)
        made = number(wanted, versions, keep=keep)
        assert covers(made, wanted)
        before = versions[-1].first.live if versions else {}
        for name, field in made.first.live.items():
            assert names.setdefault(field.number, name) == name
            if name in before:
                assert field.number == before[name].number
        kept = {one.number for one in made.first.fields}
        reserved = {
            one for first, last in made.first.reserved for one in range(first, last + 1)
        }
        assert kept | reserved == {*names}
        assert not kept & reserved
        assert parsed_proto(made.text()) == made
        versions.append(made)


@given(history=HISTORIES)
def test_a_name_that_comes_back_has_the_number_that_it_had(
    history: list[dict[str, str]],
) -> None:
    versions: list[ProtoFile] = []
    had: dict[tuple[str, str], int] = {}
    for columns in history:
        made = number(shape(columns), versions)
        before = versions[-1].first.live if versions else {}
        for name, field in made.first.live.items():
            if name not in before and (name, field.type) in had:
                assert field.number == had[name, field.type]
            had[name, field.type] = field.number
        versions.append(made)


@given(history=st.lists(COLUMNS, min_size=2, max_size=3), keep=st.booleans())
def test_googles_compiler_takes_each_version(
    history: list[dict[str, str]], keep: bool
) -> None:
    versions: list[ProtoFile] = []
    for columns in history:
        versions.append(number(shape(columns), versions, keep=keep))
    message_class(versions[-1].text())
