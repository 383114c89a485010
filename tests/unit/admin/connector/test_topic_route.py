"""A renaming of topics is a template where only the dots of a topic decide."""

import pytest

from walstream.admin.connector.topic_route import (
    TopicRoute,
    Untranslatable,
    route,
    template,
)


@pytest.mark.parametrize(
    ("expression", "replacement", "found"),
    [
        (r"([^.]+)\.([^.]+)\.([^.]+)", "$3", "{table}"),
        (r"app\.(.*)\.(.*)", "x-$1_$2", "x-{schema}_{table}"),
        (r"(.*)", "cdc.$1", "cdc.app.{schema}.{table}"),
        (r"(?<all>.*)\.(.*)", "$2.${all}", "{table}.app.{schema}"),
        (".*", "all", "all"),
        (r"other\.(.*)\.(.*)", "$1", None),
        (r"app\.public\.(.*)", "$1", None),
        (r"(.*)public(.*)", "$1$2", None),
        (r"(.*).(.*).(.*)", "$3", None),
        (r"(.*)\.(.*)\.(.*)", "a/$3", None),
    ],
)
def test_templates(expression: str, replacement: str, found: str | None) -> None:
    assert template([TopicRoute(expression, replacement)], "app") == found


def test_one_goes_by_the_topic_of_the_one_before() -> None:
    routes = [TopicRoute(r"app\.(.*)", "$1"), TopicRoute(r"(.*)\.(.*)", "$2-$1")]
    assert template(routes, "app") == "{table}-{schema}"
    assert route(routes, "app.public.orders") == "orders-public"
    assert route(routes, "elsewhere") == "elsewhere"


@pytest.mark.parametrize(
    ("expression", "replacement"),
    [(r"\p{Lower}+", "x"), ("(.*)", "${none}"), ("(.*)", "$2"), ("(.*)", "$")],
)
def test_what_java_reads_otherwise_is_not_guessed(
    expression: str, replacement: str
) -> None:
    with pytest.raises(Untranslatable):
        route([TopicRoute(expression, replacement)], "abc")
