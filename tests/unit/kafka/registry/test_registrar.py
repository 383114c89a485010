"""Texts that get numbers of a subject's versions; others may register meanwhile."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from walstream.errors import WalstreamError
from walstream.formats.encodings.protobuf import parsed_proto
from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.kafka.registry.client import SubjectVersion
from walstream.kafka.registry.errors import SchemaIncompatible, SchemaUnregistered
from walstream.kafka.registry.registrar import Registrar

HEAD = 'syntax = "proto3"; package a; message V {'


def shape(*fields: str, subject: str = "v") -> SubjectSchema:
    lines = "".join(f"optional {one}; " for one in fields)
    return SubjectSchema(subject, f"{HEAD} {lines}}}", "PROTOBUF")


def numbers(found: SchemaId) -> dict[str, int]:
    live = parsed_proto(found.text).first.live
    return {name: field.number for name, field in live.items()}


class Registry:
    """A registry that takes what `refuses` does not refuse."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.refuses: Callable[[str], bool] = lambda _: False
        self.meanwhile: list[tuple[str, str]] = []  # by others, at the next question
        self.auto_register = True
        self.asked = 0
        self.kind = "PROTOBUF"
        self.takes_s = 0.0
        self.deleted: set[int] = set()  # versions
        self.behind: list[tuple[str, str]] = []  # by others, behind the next answer

    def id_of(self, schema: SubjectSchema) -> int:
        time.sleep(self.takes_s)
        if self.meanwhile:
            subject, text = self.meanwhile.pop(0)
            self.texts.setdefault(subject, []).append(text)
        texts = self.texts.setdefault(schema.subject, [])
        if schema.text not in texts:
            if not self.auto_register:
                raise SchemaUnregistered("not there")
            if self.refuses(schema.text):
                raise SchemaIncompatible("no")
            texts.append(schema.text)
            if self.behind:
                subject, text = self.behind.pop(0)
                self.texts.setdefault(subject, []).append(text)
        return 100 + texts.index(schema.text)

    def lookup(self, schema: SubjectSchema) -> int:
        texts = self.texts.get(schema.subject, [])
        if schema.text not in texts:
            raise SchemaUnregistered("not there")
        return 100 + texts.index(schema.text)

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        every = range(1, len(self.texts.get(subject, [])) + 1)
        return [one for one in every if deleted or one not in self.deleted]

    def version(self, subject: str, number: int) -> SubjectVersion | None:
        self.asked += 1
        text = self.texts[subject][number - 1]
        return SubjectVersion(99 + number, self.kind, text) if text else None


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def registrar(registry: Registry) -> Registrar:
    client: Any = registry
    return Registrar(client)


def test_numbers_come_from_the_versions_of_the_subject(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"] = ["", f"{HEAD} int32 b = 7; }}"]  # the first is gone
    found = registrar.id_of(shape("int32 a", "int32 b"))
    assert (found.number, numbers(found)) == (102, {"a": 8, "b": 7})
    assert registry.texts["v"][-1] == found.text
    again = registrar.id_of(shape("int32 b", "int32 c"))
    assert numbers(again) == {"b": 7, "c": 9}
    assert registry.asked == 5  # each version once, and the latest whether it is that


def test_a_schema_of_another_language_is_asked_for_as_it_is(
    registrar: Registrar,
) -> None:
    schema = SubjectSchema("v", "{}", "AVRO")
    assert registrar.id_of(schema) == SchemaId(100)
    assert registrar.wanted(schema) is schema


def test_what_it_had_before_counts_unless_the_registry_refuses_it(
    registry: Registry, registrar: Registrar
) -> None:
    client: Any = registry
    schema = shape("int32 a")
    kept = f"{HEAD} optional int32 a = 5; }}"
    assert registrar.id_of(schema, kept) == SchemaId(100, kept)
    registry.texts["v"].insert(0, f"{HEAD} optional int32 a = 3; }}")
    assert registrar.id_of(schema, kept) == SchemaId(101, kept)
    registry.texts["v"].pop()
    registrar = Registrar(client)
    registry.refuses = lambda text: "= 5" in text
    assert numbers(registrar.id_of(schema, kept)) == {"a": 3}


def test_numbers_of_deleted_versions_are_not_given_again(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"] = [
        f"{HEAD} optional int32 a = 1; }}",
        f"{HEAD} optional int32 a = 1; optional int32 b = 2; }}",
    ]
    registry.deleted = {2}
    found = registrar.id_of(shape("int32 a", "int32 c"))
    assert numbers(found) == {"a": 1, "c": 3}
    assert "reserved 2;" in found.text
    wanted = registrar.wanted(shape("int32 a", "int32 d"))
    assert "optional int32 d = 4;" in wanted.text


def test_a_subject_that_was_deleted_keeps_its_numbers(
    registry: Registry, registrar: Registrar
) -> None:
    """People do so where it refuses a schema; what cannot be read counts nothing."""
    registry.texts["v"] = [
        f"{HEAD} optional int32 b = 1; optional int32 a = 2; }}",
        "service S {}",
    ]
    registry.deleted = {1, 2}
    found = registrar.id_of(shape("int32 a", "string c"))
    assert numbers(found) == {"a": 2, "c": 3}


@pytest.mark.parametrize("more", [[], ["string z"]])
def test_a_subject_that_was_deleted_for_good_has_the_numbers_of_its_new_versions(
    registry: Registry, registrar: Registrar, more: list[str]
) -> None:
    """They have the same places as those of before: the first version is another."""
    registrar.id_of(shape("int32 b", "int32 a"))
    if more:
        registrar.id_of(shape("int32 b", "int32 a", *more))
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; optional int32 d = 2; }}"]
    found = registrar.id_of(shape("int32 a", "int32 b"))
    assert numbers(found) == {"a": 1, "b": 3}
    assert "reserved 2;" in found.text


def test_what_it_had_before_does_not_count_where_others_have_its_numbers(
    registry: Registry, registrar: Registrar
) -> None:
    """Another registry takes a field with another name for the same one."""
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; optional int32 d = 2; }}"]
    kept = f"{HEAD} optional int32 a = 1; optional int32 c = 2; }}"
    found = registrar.id_of(shape("int32 a", "int32 c"), kept)
    assert numbers(found) == {"a": 1, "c": 3}
    other = f"{HEAD} optional int32 d = 5; optional int32 e = 6; }}"
    found = registrar.id_of(shape("int32 d", "int32 e"), other)
    assert numbers(found) == {"d": 2, "e": 6}


def test_what_it_had_before_counts_in_a_registry_that_was_set_back(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; optional int32 b = 2; }}"]
    kept = f"{HEAD} reserved 2; optional int32 a = 1; optional int32 c = 3; }}"
    found = registrar.id_of(shape("int32 a", "int32 c"), kept)
    assert numbers(found) == {"a": 1, "c": 3}


def test_versions_of_another_language_have_no_numbers(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"], registry.kind = ["{}"], "AVRO"
    assert numbers(registrar.id_of(shape("int32 a"))) == {"a": 1}


def test_what_another_registers_at_once_keeps_its_numbers(
    registry: Registry, registrar: Registrar
) -> None:
    """The second has no number that the first gave to another name."""
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; }}"]
    theirs = f"{HEAD} optional int32 a = 1; optional int32 b = 2; }}"
    registry.meanwhile = [("v", theirs)]
    found = registrar.id_of(shape("int32 a", "int32 c"))
    assert numbers(found) == {"a": 1, "c": 3}
    assert "reserved 2;" in found.text
    assert registry.texts["v"][-1] == found.text


def test_the_first_of_two_at_once_does_not_number_again(
    registry: Registry, registrar: Registrar
) -> None:
    """Both did, and could both end with the same number for two names."""
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; }}"]
    theirs = f"{HEAD} optional int32 a = 1; optional int32 b = 2; }}"
    registry.behind = [("v", theirs)]
    found = registrar.id_of(shape("int32 a", "int32 c"))
    assert (found.number, numbers(found)) == (101, {"a": 1, "c": 2})
    assert registry.texts["v"][2:] == [theirs]


def test_the_same_that_another_registers_at_once_is_taken(
    registry: Registry, registrar: Registrar
) -> None:
    text = registrar.wanted(shape("int32 a")).text
    registry.meanwhile = [("v", text)]
    assert registrar.id_of(shape("int32 a")) == SchemaId(100, text)
    assert registry.texts["v"] == [text]


def test_a_refusal_counts_once_the_newest_version_was_looked_at(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"] = [f"{HEAD} optional int32 a = 1; }}"]
    theirs = f"{HEAD} optional int32 a = 1; optional string b = 2; }}"
    registry.meanwhile = [("v", theirs)]
    registry.refuses = lambda text: "c = 2" in text
    found = registrar.id_of(shape("int32 a", "int32 c", "string b"))
    assert numbers(found) == {"a": 1, "b": 2, "c": 3}
    assert [text.count("deprecated") for text in registry.texts["v"]] == [0, 0, 0]
    registry.refuses = lambda _: True
    with pytest.raises(SchemaIncompatible):
        registrar.id_of(shape("int32 a", "bytes c", "string b"))


def test_fields_that_are_gone_stay_where_a_registry_wants_it(
    registry: Registry, registrar: Registrar
) -> None:
    """Apicurio takes each one that is gone for incompatible."""
    registry.refuses = lambda text: "reserved" in text
    registrar.id_of(shape("int32 a", "int32 b"))
    found = registrar.id_of(shape("int32 a", "int32 c"))
    assert numbers(found) == {"a": 1, "c": 3}
    assert "b = 2 [deprecated = true];" in found.text
    assert registrar.wanted(shape("int32 a"), keep=True).text.count("deprecated") == 2
    assert "deprecated" not in registrar.wanted(shape("int32 a")).text


def test_without_a_right_to_register_nothing_is(
    registry: Registry, registrar: Registrar
) -> None:
    registry.auto_register = False
    with pytest.raises(SchemaUnregistered):
        registrar.id_of(shape("int32 a"))
    registry.texts["v"] = [f"{HEAD} optional int32 a = 9; }}"]
    assert numbers(registrar.id_of(shape("int32 a"))) == {"a": 9}


def test_a_latest_version_that_cannot_be_read_is_told(
    registry: Registry, registrar: Registrar
) -> None:
    registry.texts["v"] = ["service S {}"]
    with pytest.raises(WalstreamError, match="'service'"):
        registrar.id_of(shape("int32 a"))


def test_threads_number_many_subjects_at_once(registrar: Registrar) -> None:
    """A source's first start; each subject has versions, and is asked for twice."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    failed: list[BaseException] = []

    def ask(thread: int) -> None:
        try:
            for turn in range(200):
                subject = f"{thread}-{turn // 2}"
                shown = shape(f"int32 a{turn}", subject=subject)
                assert numbers(registrar.id_of(shown)) == {f"a{turn}": 1 + turn % 2}
        except BaseException as error:  # noqa: BLE001 - a thread's
            failed.append(error)

    try:
        threads = [threading.Thread(target=ask, args=(one,)) for one in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
    finally:
        sys.setswitchinterval(before)
    assert failed == []


def test_threads_number_one_after_the_other(
    registry: Registry, registrar: Registrar
) -> None:
    """None has to be numbered again."""
    registry.takes_s = 0.01
    found: list[dict[str, int]] = []

    def ask(name: str) -> None:
        found.append(numbers(registrar.id_of(shape(f"int32 {name}"))))

    threads = [threading.Thread(target=ask, args=(f"c{one}",)) for one in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(10)
    given = [number for one in found for number in one.values()]
    assert sorted(given) == [*range(1, 9)]
    assert len(registry.texts["v"]) == len(threads)
