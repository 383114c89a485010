"""The written file says what each key was, and what is to decide."""

import tomllib

from tests.support.connector import translated
from walstream.admin.connector.document import write


def test_each_key_names_its_property_once() -> None:
    draft, _ = translated({"slot.name": "dbz", "decimal.handling.mode": "double"})
    text = write(draft, state="/state", insecure=(False, True))
    assert '# (slot.name)\nslot = "dbz"\n' in text
    assert text.count("(decimal.handling.mode)") == 1
    assert "To decide" not in text
    made = tomllib.loads(text)
    assert made["sources"]["app"]["slot"] == "dbz"
    assert "insecure" not in made["sources"]["app"]
    assert made["sinks"]["kafka"]["insecure"] is True


def test_what_is_to_decide_stands_first_and_within_its_comment() -> None:
    draft, _ = translated({"odd\nkey = 1": "x", "name": "two\nlines", "a.b": "s3cret"})
    text = write(draft, state="/state", insecure=(False, False))
    head, _, _ = text.partition("\n\n")
    assert "To decide before walstream runs:" in head
    assert all(line.startswith("#") for line in head.splitlines())
    assert "- a.b: walstream does not know" in head
    assert "s3cret" not in text
    tomllib.loads(text)


def test_names_of_tables_and_texts_are_quoted() -> None:
    name = 'we "ird'
    given = {
        "message.key.columns": f"{name}.t:a",
        "column.exclude.list": rf"{name}\.t\.b",
        "topic.creation.default.cleanup.policy": "compact",
    }
    draft, _ = translated(given)
    sink = tomllib.loads(write(draft, state="s", insecure=(False, False)))["sinks"]
    assert sink["kafka"]["topics"] == {
        f"{name}.t": {"name": "app.we__ird.t", "partition_key": ["a"]}
    }
    assert sink["kafka"]["handlers"] == [
        {"kind": "drop_columns", "tables": [f"{name}.t"], "columns": ["b"]}
    ]
    assert sink["kafka"]["topic_config"] == {"cleanup.policy": "compact"}
