"""Which tables the next start reads anew in any case."""

from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental.progress import TableRequest, TableRequests
from walstream.sources.postgres.publications import read_anew


def test_what_is_to_be_replaced_and_not_begun_is_read_anew() -> None:
    record = BackfillProgress(0, ("public.a", "public.b"), replace=("public.a",))
    wishes = {
        "public.c": TableRequest(replace=True),
        "public.d": TableRequest(replace=True, truncated=True),  # goes on where it was
        "public.e": TableRequest(),
    }
    assert read_anew(record, TableRequests(wishes)) == {"public.a", "public.c"}
    assert read_anew(None, None) == set()
