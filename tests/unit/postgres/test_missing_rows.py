"""The rule for tables of which rows may be missing."""

from tests.unit.postgres.test_publication import KEYLESS, TABLE
from walstream.postgres.missing_rows import Mending

FACTS = {"public.t": TABLE, "public.log": KEYLESS}
MISSED = {"public.t": "was out", "public.log": "was out"}


def test_the_default_stops_and_names_tables_and_command() -> None:
    refusal = Mending("app").refusal(MISSED, FACTS)
    assert refusal is not None
    assert "public.log, public.t" in str(refusal)
    assert refusal.repair.command == (
        "walstream backfill public.log public.t --replace --source app"
    )


def test_only_a_table_without_a_row_key_stops_where_tables_are_read_anew() -> None:
    mending = Mending("app", reread=True)
    assert mending.refusal({"public.t": "was out"}, FACTS) is None
    refusal = mending.refusal(MISSED, FACTS)
    assert refusal is not None
    assert "public.t" not in str(refusal)


def test_who_is_not_the_judge_never_stops() -> None:
    assert Mending(elsewhere=True).refusal(MISSED, FACTS) is None


def test_a_command_of_many_tables_names_all() -> None:
    names = [f"public.t{number}" for number in range(60)]
    assert Mending().command(names) == "walstream backfill '*.*' --replace"
