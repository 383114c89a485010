"""Columns that a connector leaves out or hides stay so."""

from pathlib import Path

from tests.support.connector import draft, fates, sql, translated, undecided
from walstream.admin.connector.draft import Fate


def test_columns_are_dropped() -> None:
    made = draft(column_exclude_list=r"public.t.a,public\.t\.b,.*\.secret")
    assert made.handlers == [
        {"kind": "drop_columns", "tables": ["public.t"], "columns": ["a", "b"]},
        {"kind": "drop_columns", "tables": ["*"], "columns": ["secret"]},
    ]
    assert not undecided(made)


def test_what_cannot_be_dropped_keeps_the_source_from_starting() -> None:
    for given in (
        {"column_exclude_list": r"public\.t\.pii_.*"},
        {"column_include_list": r"public\.t\.a,public\.t\.b"},
    ):
        made = draft(**given)
        assert made.tables["source"]["publication"] == "debezium_walstream"
        assert "has to be made" in fates(made, undecided(made)[0])[Fate.TO_DECIDE]
    lists = sql(made, "column.include.list")
    assert lists.endswith('"debezium_walstream" FOR TABLE public.t (a, b);')


def test_masks_stay_masks_and_their_salt_a_secret(tmp_path: Path) -> None:
    made, references = translated(
        {
            "column.mask.with.3.chars": r"public\.t\.a",
            "column.mask.hash.SHA-256.with.salt.s4lt": r"public\.t\.b",
            "column.truncate.to.5.chars": r"public\.t\.c",
        },
        output=tmp_path / "w.toml",
    )
    text, hashed = made.handlers
    assert (text["columns"], text["text"]) == (["a"], "***")
    path = tmp_path / "w.mask"
    assert hashed["secret"] == f"${{file:{path}}}"
    assert len(references.files[path]) == 64
    assert undecided(made) == [
        "column.mask.with.3.chars",
        "column.mask.hash.SHA-256.with.salt.***",
        "column.truncate.to.5.chars",
    ]
    path.write_text("of the first time")
    _, references = translated(
        {"column.mask.hash.v2.MD5.with.salt.x": "a.b.c"}, output=tmp_path / "w.toml"
    )
    assert not references.files


def test_keys_of_columns_are_those_of_mapped_topics() -> None:
    made = draft(message_key_columns="public.t:a;public.u:b,c")
    assert made.topics == {
        "public.t": {"name": "app.public.t", "partition_key": ["a"]},
        "public.u": {"name": "app.public.u", "partition_key": ["b", "c"]},
    }
    told = fates(made, "message.key.columns")
    assert "order of the table" in told[Fate.TO_DECIDE]
    assert "'a'" in told[Fate.TRANSLATED]


def test_keys_that_are_of_several_tables_are_told() -> None:
    made = draft(message_key_columns="(.*).t:a;public.u")
    assert "partition_key" in fates(made, "message.key.columns")[Fate.TO_DECIDE]
    assert not made.topics


def test_a_column_has_a_name() -> None:
    made = draft(column_exclude_list="..")
    assert not made.handlers
    assert undecided(made) == ["column.exclude.list"]
