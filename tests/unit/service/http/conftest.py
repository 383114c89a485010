"""A board with one stream, without any server."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from walstream.config import Config
from walstream.service.http.board import Board
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.worker_state import worker_of
from walstream.telemetry.counts import ProcessCounts
from walstream.telemetry.meter import Meter

Change = Callable[..., Board]


def config(**http: Any) -> Config:
    return Config.model_validate(
        {
            "http": {"listen": "127.0.0.1:0", **http},
            "sources": {
                "app": {
                    "kind": "postgres",
                    "dsn": "host=/run/postgresql",
                    "sinks": ["kafka"],
                }
            },
            "sinks": {
                "kafka": {
                    "kind": "kafka",
                    "producer": {"bootstrap.servers": "localhost:9092"},
                }
            },
        }
    )


def told(**changed: Any) -> dict[str, Any]:
    """Give what the control socket says of a healthy worker, and when it was heard."""
    return {
        "pid": 7,
        "exit_code": None,
        "died_with": None,
        "lent": False,
        "silent": False,
        "stalls": [],
        "heard_at": time.monotonic(),
        "state": "streaming",
        "error": None,
        "resume": "0/2000",
        "ops": 12,
        "delivered": 12,
        "ops_per_s": 3.0,
        "delivered_per_s": 3.0,
        "lag_s": 0.0,
        "current_at": time.time(),
        "health": {
            "retained_wal": 4096,
            "wal_status": "reserved",
            "safe_wal_size": None,
            "flush_lsn": 0x2000,
            "lost": None,
            "spill_txns": 2,
            "spill_bytes": 5000,
            "spilled": 3000,
        },
        "received": 0x2000,
        "backfill": None,
        "backfill_record": None,
        "beside": {},
        "away": {},
        "sinks": {
            "kafka": {
                "waiting": False,
                "in_flight": 2,
                "dropped": 1,
                "records": 12,
                "tables": {"public.t": {"dropped": 1}},
            }
        },
        **changed,
    }


def counted() -> ProcessCounts:
    meter = Meter()
    meter.tables.of("public.t").ops += 12
    sink = meter.sink("kafka")
    sink.tables.of("public.t").ops += 11
    sink.deliver(12, 0, 0.0, meter.tables.of("public.t"))
    counts = meter.report()
    sinks = {"kafka": replace(counts.sinks["kafka"], dropped={"public.t": 1})}
    metrics = replace(counts, sinks=sinks, backfill_rows=5, held_s=1.5)
    messages = {"accepted": 1, "refused": 2}
    metrics = replace(metrics, backfill_messages=messages)
    return ProcessCounts(metrics=metrics, errors={"transient": 2}, deaths=1)


def snapshot(report: dict[str, Any], **changed: Any) -> InstanceSnapshot:
    fields: dict[str, Any] = {
        "at": time.time(),
        "made_at": time.monotonic(),
        "pid": 1,
        "started_at": time.time() - 60,
        "stopping": False,
        "log_level": "info",
        "sources": {"app": report},
        "away": {},
        "counted": {"app": counted()},
        **changed,
    }
    for name in ("sources", "away"):
        fields[name] = {one: worker_of(told) for one, told in fields[name].items()}
    return InstanceSnapshot(**fields)


@pytest.fixture
def board() -> Change:
    """Make one: `board(state="waiting", http={...}, over={...})`."""

    def make(
        http: dict[str, Any] | None = None,
        over: dict[str, Any] | None = None,
        **changed: Any,
    ) -> Board:
        made = Board(config(**(http or {})))
        made.publish(snapshot(told(**changed), **(over or {})))
        return made

    return make
