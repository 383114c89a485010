"""Rules of publications, backfills and polling, taken out of walstream; see `rules`."""

from typing import Any

from walstream.kafka.bulk_producer import BulkProducer
from walstream.postgres import continuity
from walstream.postgres.publication_watch import PublicationWatch
from walstream.sources.postgres.backfill.job import Job
from walstream.sources.postgres.session_stream import SessionStream
from walstream.sources.sql.gap_ledger import GapLedger
from walstream.spark.outcome import ChunkDone

Patch = tuple[object, str, object]


def not_read_again() -> Patch:
    return PublicationWatch, "again", lambda *_: None


def any_way_goes_on() -> Patch:
    return continuity, "_goes_on", lambda before, after: bool(after) or not before


def partition_away() -> Patch:
    return continuity, "_leaves", lambda *_: None


def key_is_back() -> Patch:
    return PublicationWatch, "regained", lambda *_: True


def widened_ignored() -> Patch:
    compare = continuity.compare

    def patched(*given: Any) -> continuity.Difference:
        found = compare(*given)
        found.widened.clear()
        return found

    return continuity, "compare", patched


def done_with_its_first_chunk() -> Patch:
    count = Job._count

    def patched(self: Job, done: ChunkDone) -> None:
        chunk = self._left.get(done.number)
        if chunk is not None:
            self._of[chunk.title] = 1
        count(self, done)

    return Job, "_count", patched


def not_up_to_the_snapshot() -> Patch:
    return SessionStream, "run_up_to", lambda *_: True


def chunk_not_delivered() -> Patch:
    return BulkProducer, "finish", lambda _self: None


def first_row_not_awaited() -> Patch:
    send = BulkProducer.send

    def patched(self: BulkProducer, *record: Any) -> None:
        self.reports.setdefault(record[3], self._callback(record[3]))
        send(self, *record)

    return BulkProducer, "send", patched


def gaps_not_noted() -> Patch:
    return GapLedger, "note", lambda *_: None


def gaps_forgotten_in_time() -> Patch:
    ripe = GapLedger._ripe
    return GapLedger, "_ripe", lambda self, now, _: ripe(self, now, None)
