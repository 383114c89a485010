"""Keys that hold names, as far as columns and the catalog's facts tell."""

from dataclasses import replace

from tests.unit.postgres.checks.test_tables import KEYED
from walstream.postgres.checks.key_type import of_names

FULL = replace(KEYED, name="f", replica_identity="f", identity=())


def test_a_key_of_names_is_warned_of_and_another_column_is_not() -> None:
    captured = {"public.t": KEYED, "public.f": FULL}
    columns = [
        ("public.t", "v", "regclass"),
        ("public.f", "id", "regtype[]"),
        ("public.other", "id", "regclass"),
    ]
    (finding,) = of_names(columns, captured)
    assert finding.subject == "table public.f"
    assert "id of public.f (regtype[])" in finding.what
    assert not list(of_names(columns[:1], captured))
