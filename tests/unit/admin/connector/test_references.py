"""What stands elsewhere is referred to; a secret never stands in the configuration."""

from pathlib import Path

import pytest

from tests.support.connector import translated, undecided
from walstream.errors import ConfigError


def dsn(entries: dict[str, str], output: Path, *, server: bool = False) -> str:
    draft, _ = translated(entries, output=output, server=server)
    return str(draft.tables["source"]["dsn"])


def test_a_plain_password_goes_into_a_file_as_libpq_spells_it(tmp_path: Path) -> None:
    output = tmp_path / "walstream.toml"
    draft, references = translated({"database.password": r"a'b\c ${d"}, output=output)
    path = tmp_path / "walstream.database.password"
    assert references.files == {path: r"a\'b\\c ${d"}
    assert f"password='${{file:{path}}}'" in draft.text("source", "dsn")
    assert not undecided(draft)


def test_a_variable_stays_one(tmp_path: Path) -> None:
    output = tmp_path / "w.toml"
    assert "password='${env:PW}'" in dsn({"database.password": "${env:PW}"}, output)
    assert "host='${env:PG}.x'" in dsn({"database.hostname": "${env:PG}.x"}, output)


def test_a_folders_file_stays_one(tmp_path: Path) -> None:
    written = dsn({"database.password": "${directory:/run/s:pw}"}, tmp_path / "w.toml")
    assert "password='${file:/run/s/pw}'" in written


def test_of_a_properties_file_a_value_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("pw = it's\nother=1", "iso-8859-1")
    reference = f"${{file:{tmp_path}/s.properties:pw}}"
    draft, references = translated(
        {"database.password": reference}, output=tmp_path / "w.toml"
    )
    assert list(references.files.values()) == ["it\\'s"]
    assert not undecided(draft)


def test_what_cannot_be_asked_is_left_to_a_person(tmp_path: Path) -> None:
    for reference in (
        "${file:/nowhere/s.properties:pw}",
        "${vault:secret/data/x:pw}",
        "${env:a-b}",
    ):
        draft, references = translated(
            {"database.password": reference}, output=tmp_path / "w.toml"
        )
        assert not references.files
        assert undecided(draft) == ["database.password"]
        assert f"{tmp_path}/w.database.password" in draft.text("source", "dsn")


def test_a_provider_is_known_by_its_class(tmp_path: Path) -> None:
    given = {
        "config.providers.e.class": "org.apache.kafka.common.config.provider."
        "EnvVarConfigProvider",
        "database.password": "${e:PW}",
    }
    assert "'${env:PW}'" in dsn(given, tmp_path / "w.toml")


def test_expressions_of_debezium_server_are_variables(tmp_path: Path) -> None:
    output = tmp_path / "w.toml"
    assert "'${env:PW}'" in dsn({"database.password": "${PW}"}, output, server=True)
    draft, _ = translated({"database.user": "${U:app}"}, output=output, server=True)
    assert undecided(draft) == ["database.user"]


@pytest.mark.parametrize(
    "entries",
    [
        {"topic.prefix": "${env:PREFIX}"},
        {"slot.name": "${file:/run/x.properties:slot}"},
        {"message.key.columns": "public.a:${env:KEY}"},
    ],
)
def test_a_name_is_not_made_of_a_references_words(entries: dict[str, str]) -> None:
    (key,) = entries
    with pytest.raises(ConfigError, match=f"{key} refers to a value"):
        translated(entries)


def test_a_reference_that_nothing_is_made_of_may_stay() -> None:
    router = {
        "transforms": "o",
        "transforms.o.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.o.route.topic.replacement": "x.${routedByValue}",
    }
    translated(router, server=True)
    translated({"name": "${env:NAME}", "heartbeat.action.query": "${env:SQL}"})


def test_what_is_no_reference_is_written_as_it_is() -> None:
    draft, _ = translated({"unavailable.value.placeholder": "${x}"})
    assert draft.tables["debezium"]["unavailable"] == "$${x}"
