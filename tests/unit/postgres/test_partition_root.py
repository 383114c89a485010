"""The key of a root, as the catalog has it."""

from dataclasses import replace

from tests.unit.postgres.test_table_keys import FACTS
from walstream.pipeline.root_key import RootKey
from walstream.postgres import partition_root


def test_under_full_a_root_has_no_columns_of_its_own() -> None:
    root = replace(FACTS, kind="p", identity=("id",))
    assert partition_root.key_of(root) == RootKey(frozenset(), True, "public", "t")
    default = replace(root, replica_identity="d")
    assert partition_root.key_of(default) == RootKey(
        frozenset({"id"}), False, "public", "t"
    )
