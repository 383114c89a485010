"""Which tables the next start reads anew in any case."""

from walstream.sources.postgres.backfill.record import Record
from walstream.sources.postgres.incremental.progress import Wish, Wishes
from walstream.sources.postgres.publications import read_anew


def test_what_is_to_be_replaced_and_not_begun_is_read_anew() -> None:
    record = Record(0, ("public.a", "public.b"), replace=("public.a",))
    wishes = {
        "public.c": Wish(replace=True),
        "public.d": Wish(replace=True, truncated=True),  # goes on where it was
        "public.e": Wish(),
    }
    assert read_anew(record, Wishes(wishes)) == {"public.a", "public.c"}
    assert read_anew(None, None) == set()
