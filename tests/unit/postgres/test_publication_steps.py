"""What is to be done so that publications are as they are wanted."""

from dataclasses import replace

from tests.support.table_facts import table_facts
from walstream.postgres.publication import Publication, PublicationPlan
from walstream.postgres.publication_steps import exclusions, relistings
from walstream.postgres.selection import Selection

TABLE = table_facts(columns=("id", "v"), oid=7)
WANTED = Selection(["public.*"], columns={"public.t": ["id"]})
PLAN = PublicationPlan([TABLE])


def made(name: str, tables: dict[int, str], *columns: str) -> Publication:
    lists = {7: frozenset(columns)} if columns else {}
    return Publication(
        name, 1, False, frozenset(), True, tables, frozenset(), lists=lists
    )


MAIN = made("p", {7: "public.t"})
INSERTS = made("p_insert", {})


def done(*publications: Publication) -> list[tuple[str, list[str], list[str]]]:
    """Tell where, which tables come in, which go out."""
    return [
        (
            change.into.name,
            [table.name for table in change.tables],
            [table.name for table in change.leaving],
        )
        for change in relistings(WANTED, PLAN, *publications)
    ]


def test_another_list_takes_a_table_out_and_in_at_once() -> None:
    assert done(MAIN, INSERTS) == [("p", ["t"], ["t"])]
    assert done(made("p", {7: "public.t"}, "id", "v"), INSERTS) == [("p", ["t"], ["t"])]
    assert done(made("p", {7: "public.t"}, "id"), INSERTS) == []
    assert done(made("p", {}), INSERTS) == []  # it comes in with its list


def test_of_a_table_in_both_one_stays_before_the_other_changes() -> None:
    """PostgreSQL decodes no change of a table that has two lists."""
    both = made("p_insert", {7: "public.t"})
    assert done(MAIN, both) == [("p_insert", [], ["t"]), ("p", ["t"], ["t"])]
    listed = made("p", {7: "public.t"}, "id")
    assert done(listed, both) == [("p_insert", [], ["t"])]
    assert done(listed, made("p_insert", {7: "public.t"}, "id")) == []


def test_a_table_in_the_other_one_alone_changes_there() -> None:
    alone = made("p_insert", {7: "public.t"})
    assert done(made("p", {}), alone) == [("p_insert", ["t"], ["t"])]


def test_excluded_tables_go_out_of_each_that_names_them() -> None:
    wanted = Selection(["public.*"], ["*.t"])
    facts = {"public.t": TABLE, "public.u": replace(TABLE, name="u", oid=8)}
    main = made("p", {7: "public.t", 8: "public.u", 9: "public.gone"})
    found = list(exclusions(wanted, [main, INSERTS], facts))
    assert [(one.into.name, list(one.tables)) for one in found] == [("p", [])]
    assert [table.name for table in found[0].leaving] == ["t"]
