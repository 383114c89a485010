"""What names and patterns mean, whoever reads it then."""

import pytest

from tests.support.table_facts import table_facts
from walstream.config import PostgresSource
from walstream.errors import ConfigError, Transient
from walstream.postgres.catalog import TableFacts
from walstream.sources.postgres.table_choice import Ground, TableChoice, asking, choose

TABLES = {
    name: table_facts(name)
    for name in ("public.orders", "public.odd", "s.orders", "s.root")
}
ALL = {
    **TABLES,
    "s.leaf": table_facts("s.leaf", root="s.root"),
    "s.other": table_facts("s.other"),
}
GROUND = Ground(
    "walstream",
    TABLES,
    ALL,
    {**dict.fromkeys(ALL, "r"), "public.shown": "v", "s.far": "f"},
)


class Fair:
    """Leaves out what is odd, unless that is named."""

    def table(self, table: TableFacts, *, named: bool) -> str:
        if table.name != "odd":
            return ""
        if named:
            raise ConfigError("it is odd")
        return "it is odd"

    def other(self, name: str) -> None:
        if name == "s.far":
            raise ConfigError("too far")


@pytest.mark.parametrize(
    ("wanted", "choice"),
    [
        (["orders"], TableChoice(["public.orders"])),
        (
            ["s.orders", "orders", "s.*"],
            TableChoice(["s.orders", "public.orders", "s.root"]),
        ),
        (["o*"], TableChoice(["public.orders"], [], {"public.odd": "it is odd"})),
        (["*.orders"], TableChoice(["public.orders", "s.orders"])),
        (["shown", "s.root"], TableChoice(["s.root"], ["public.shown"])),
        (["sh*", "public.shown"], TableChoice([], ["public.shown"])),
        ([], TableChoice()),
    ],
)
def test_names_and_patterns_mean(wanted: list[str], choice: TableChoice) -> None:
    assert choose(GROUND, wanted, Fair()) == choice


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ("odd", "it is odd"),
        ("s.far", "too far"),
        ("order", "there is no table 'public.order'\n  did you mean 'public.orders'?"),
        ("s.nothing_like_it", "captured are: public.odd, public.orders, s.orders"),
        ("s.leaf", "is streamed as 's.root': it is its partition"),
        ("s.other", "'s.other' is not captured"),
        ("t.*", "no captured table matches 't.\\*'"),
        ("s.oth*", "no captured table matches"),
    ],
)
def test_what_cannot_be_meant_is_said(wanted: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        choose(GROUND, ["orders", wanted], Fair())


def test_a_name_with_a_star_in_it_is_a_pattern_that_finds_it() -> None:
    ground = Ground("p", {"s.a*": table_facts("s.a*")}, {}, {})
    assert choose(ground, ["s.a*"], Fair()).tables == ["s.a*"]


def test_a_server_that_is_away_is_not_waited_for_by_a_command() -> None:
    source = PostgresSource(
        kind="postgres", dsn="postgresql://127.0.0.1:1/d", sinks=["k"]
    )
    with pytest.raises(Transient) as away, asking(source):
        pass
    assert "refused" in str(away.value)
    assert "tries again" not in str(away.value)
    assert away.value.hint == "no backfill was requested: run this command again"
