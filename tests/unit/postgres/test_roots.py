"""The key of a root, as the catalog has it."""

from dataclasses import replace

from tests.unit.postgres.test_key_book import FACTS
from walstream.postgres import roots
from walstream.root_keys import RootKey


def test_under_full_a_root_has_no_columns_of_its_own() -> None:
    root = replace(FACTS, kind="p", identity=("id",))
    assert roots.key_of(root) == RootKey(frozenset(), True, "public", "t")
    default = replace(root, replica_identity="d")
    assert roots.key_of(default) == RootKey(frozenset({"id"}), False, "public", "t")
