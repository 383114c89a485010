"""What a role lacks, and the SQL that gives just that."""

from dataclasses import replace

from tests.support.table_facts import table_facts
from walstream.postgres.privileges import Rights, missing_to_create, missing_to_extend
from walstream.postgres.publication import Publication

TABLE = table_facts()
OTHER = replace(TABLE, name="s")
PUBLICATION = Publication(
    name="walstream",
    oid=9,
    all_tables=False,
    operations=frozenset({"insert"}),
    via_root=True,
    tables={},
    schemas=frozenset(),
)
ALL = Rights("app", "shop", True, frozenset(), frozenset())
CREATE = ["CREATE PUBLICATION ...;", "CREATE PUBLICATION ..._insert;"]


def test_nothing_is_missing_to_an_owner_who_may_create() -> None:
    assert missing_to_create(ALL, CREATE, [TABLE]) is None
    # another's table that is not wanted does no harm
    other = replace(ALL, foreign_tables=frozenset({"public.s"}))
    assert missing_to_create(other, CREATE, [TABLE]) is None


def test_foreign_tables_are_published_by_a_superuser_whatever_else_lacks() -> None:
    lacks = replace(ALL, may_create=False, foreign_tables=frozenset({"public.t"}))
    found = missing_to_create(lacks, CREATE, [TABLE, OTHER])
    assert found is not None
    assert "public.t: it is not the owner" in found.args[0]
    assert found.repair.sql.splitlines() == CREATE


def test_the_right_to_create_is_granted_to_this_role_on_this_database() -> None:
    lacks = Rights('a"p', "Shop", False, frozenset(), frozenset())
    found = missing_to_create(lacks, CREATE, [TABLE])
    assert found is not None
    assert found.repair.sql == 'GRANT CREATE ON DATABASE "Shop" TO "a""p";'


def test_tables_that_are_in_need_no_right() -> None:
    lacks = replace(ALL, foreign_publications=frozenset({"walstream"}))
    holding = replace(PUBLICATION, tables={5: "public.t"})
    assert missing_to_extend(lacks, holding, [TABLE]) is None
    assert missing_to_extend(ALL, PUBLICATION, [TABLE]) is None


def test_only_foreign_tables_lack_to_the_owner_of_the_publication() -> None:
    lacks = replace(ALL, foreign_tables=frozenset({"public.s"}))
    found = missing_to_extend(lacks, PUBLICATION, [TABLE, OTHER])
    assert found is not None
    assert found.repair.sql == (
        'ALTER PUBLICATION "walstream" ADD TABLE ONLY "public"."s";'
    )


def test_every_table_lacks_where_the_publication_is_foreign() -> None:
    lacks = replace(ALL, foreign_publications=frozenset({"walstream"}))
    found = missing_to_extend(lacks, PUBLICATION, [TABLE, OTHER])
    assert found is not None
    assert '"public"."t", ONLY "public"."s"' in found.repair.sql
