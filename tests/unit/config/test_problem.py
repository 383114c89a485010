"""Problems: named by the file's own keys, in words that say what would be right."""

import pytest

from walstream.config.problem import Problem, error_of, is_private, show_path, suggest


def test_a_path_is_written_as_toml_would() -> None:
    path = ("sinks", "kafka", "topics", "public.inventory", "name")
    assert show_path(path) == 'sinks.kafka.topics."public.inventory".name'
    assert show_path(("sources", "app", "tables", 0)) == "sources.app.tables[0]"
    assert show_path(("WALSTREAM__X",)) == "WALSTREAM__X"


def test_one_problem_takes_one_line_and_several_a_list() -> None:
    one, two = Problem(("a",), "is bad"), Problem(("b",), "is worse")
    assert str(error_of("f.toml", [one, one])) == "f.toml: a: is bad"
    assert str(error_of("f.toml", [one, two])) == (
        "f.toml: 2 problems\n  a: is bad\n  b: is worse"
    )


def test_the_nearest_known_key_is_suggested() -> None:
    assert suggest("tabels", ["tables", "slot"]) == "did you mean tables?"
    assert suggest("zzz", ["b", "a"]) == "known are a, b"
    assert suggest("x", []) == "there is none yet"


@pytest.mark.parametrize(
    "path",
    [
        ("sources", "app", "dsn"),
        ("sources", "app", "url"),
        ("sinks", "k", "producer", "client.id"),
        ("sources", "k", "consumer", "x"),
        ("spark", "conf", "x"),
        ("sources", "app", "password"),
    ],
)
def test_values_that_may_be_secret_are_never_shown(path: tuple[str, ...]) -> None:
    assert is_private(path)


def test_other_values_are_shown() -> None:
    assert not is_private(("sources", "dsn", "slot"))
    assert not is_private(("sinks", "k", "key"))
    assert not is_private(("spark", "master"))
