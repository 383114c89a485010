"""The texts of `/status` and `/stats`: pure."""

import json
from collections.abc import Iterator
from typing import Any

from walstream.service.http.board import Truth
from walstream.status.model import SourceStatus, Status
from walstream.telemetry.terminal import escape_json


def status_lines(truth: Truth) -> Iterator[str]:
    """Yield OK or ERROR, then the problems, then the state of each object."""
    yield "OK" if truth.well else "ERROR"
    for source, text in truth.problems:
        yield f"! {f'source {source!r}' if source else 'supervisor'}: {text}"
    for one in truth.status.sources:
        yield f"source {one.name}: {one.state}"
        for sink in one.sinks:
            yield f"sink {sink.name} of {one.name}: {sink.state}"


def stats_lines(status: Status) -> Iterator[str]:
    """Yield one line for each object: key=value, without unknown values."""
    for source in status.sources:
        yield _line(
            source=source.name,
            kind=source.kind,
            state=source.state,
            problems=len(source.problems),
            ops=source.ops,
            delivered=source.delivered,
            ops_per_s=source.ops_per_s,
            delivered_per_s=source.delivered_per_s,
            lag_s=source.lag_s,
            lag_bytes=source.lag_bytes,
            lag_records=source.lag_records,
            resume=source.resume,
            retained_wal=source.slot.retained_wal if source.slot else None,
            spilled=source.slot.spilled if source.slot else None,
        )
        yield from _parts(source)


def _parts(source: SourceStatus) -> Iterator[str]:
    for sink in source.sinks:
        yield _line(
            sink=sink.name,
            source=source.name,
            kind=sink.kind,
            state=sink.state,
            sent=sink.sent,
            left_out=sink.left_out,
            errors=sink.errors,
            in_flight=sink.in_flight,
            dropped=sink.dropped,
            skipped=sink.skipped,
            failed=sink.failed,
            parked=sink.parked,
        )
    if (backfill := source.backfill) is not None:
        yield _line(
            backfill=source.name,
            state=backfill.state,
            tables_left=len(backfill.tables),
            rows=backfill.rows,
            rows_per_s=backfill.rows_per_s,
            share=backfill.share,
            left_s=backfill.left_s,
        )
    for name, table in source.beside.items():
        yield _line(
            backfill=f"{source.name}/{name}", state=table.state, rows=table.rows
        )
    for name, polled in source.tables.items():
        yield _line(
            table=name,
            source=source.name,
            position=polled.position,
            rows=polled.rows,
            rows_per_s=polled.rows_per_s,
            missing_keys=polled.missing_keys,
            held=polled.held or None,
        )


def _line(**fields: Any) -> str:
    known = {key: value for key, value in fields.items() if value is not None}
    return " ".join(f"{key}={_text(value)}" for key, value in known.items())


def _text(value: Any) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    # quoted as in JSON: a table's name may hold any character
    plain = text.isprintable() and not set(text) & set(' "=\\')
    quoted = json.dumps(text, ensure_ascii=False)
    return text if text and plain else escape_json(quoted)
