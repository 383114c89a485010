"""The SQL of positions; that it does what it says: integration/test_mirror_keys.py."""

from consumer.mirror.position_store import GENERAL, KeyType, Store, ddl

_TYPES = (KeyType("citext", equal="OPERATOR(away.=)"), KeyType("numeric(5,2)"))


def test_a_tables_own_store_has_the_types_of_its_key() -> None:
    made = ddl("public.t", (*_TYPES, KeyType("text", ' COLLATE "x"."a%b"')))
    assert made.startswith("CREATE TABLE replication_mirror_row_")
    assert "(key0 citext NOT NULL, key1 numeric(5,2) NOT NULL," in made
    assert 'key2 text COLLATE "x"."a%b" NOT NULL' in made
    assert made.endswith("PRIMARY KEY (key0, key1, key2));")
    assert made.split("(")[0] != ddl("public.u", _TYPES).split("(")[0]


def test_keys_are_compared_by_their_indexs_operator() -> None:
    store = Store("s", ("key0", "key1"), _TYPES)
    same = "p.key0 OPERATOR(away.=) w.key0 AND p.key1 OPERATOR(pg_catalog.=) w.key1"
    assert same in store.take()
    assert "CAST(u.key0 AS citext) AS key0" in store.write()


def test_rows_are_locked_in_the_keys_order() -> None:
    assert "ORDER BY relation, key ON CONFLICT DO NOTHING" in GENERAL.add()
    assert GENERAL.take().endswith("ORDER BY p.relation, p.key FOR UPDATE OF p")
