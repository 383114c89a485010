"""Every module has a unit test of its name, or a reason to have none."""

from tests.cover_own import ROOT, modules, unit_test_of

_SERVERS = "asks real servers: tests/integration, tests/fault"
WITHOUT = {
    "consumer/barrier.py": _SERVERS,
    "consumer/basic.py": _SERVERS,
    "consumer/error.py": "names: tests/unit/consumer/test_blame.py has their texts",
    "consumer/fetcher.py": _SERVERS,
    "consumer/group.py": _SERVERS,
    "consumer/idempotent.py": _SERVERS,
    "consumer/metrics.py": "constants",
    "consumer/mirror/mirror.py": _SERVERS,
    "consumer/mirror/rows.py": _SERVERS,
    "consumer/mirror/shape.py": _SERVERS,
    "consumer/partition.py": _SERVERS,
    "consumer/session.py": _SERVERS,
    "consumer/state.py": _SERVERS,
    "consumer/topic.py": _SERVERS,
    "walstream/added.py": "tests/integration/test_packages.py",
    "walstream/backfill/asking.py": _SERVERS,
    "walstream/backfill/backfill.py": _SERVERS,
    "walstream/backfill/checks.py": _SERVERS,
    "walstream/backfill/obstacles.py": _SERVERS,
    "walstream/backfill/order.py": "records",
    "walstream/backfill/orphans.py": _SERVERS,
    "walstream/beginning.py": _SERVERS,
    "walstream/backfilling.py": _SERVERS,
    "walstream/beside/__init__.py": "a docstring",
    "walstream/checking.py": _SERVERS,
    "walstream/chunk_task.py": _SERVERS,
    "walstream/cli/backfill.py": _SERVERS,
    "walstream/cli/check.py": _SERVERS,
    "walstream/cli/init.py": _SERVERS,
    "walstream/cli/options.py": "options alone: tests/unit/cli/test_main.py",
    "walstream/cli/poll.py": _SERVERS,
    "walstream/cli/polled.py": _SERVERS,
    "walstream/cli/positions.py": _SERVERS,
    "walstream/cli/run.py": _SERVERS,
    "walstream/cli/slots.py": _SERVERS,
    "walstream/cli/status.py": _SERVERS,
    "walstream/control_server.py": "tests/unit/test_control.py",
    "walstream/driver/__init__.py": "a docstring",
    "walstream/driver/__main__.py": _SERVERS,
    "walstream/driver/order.py": "records",
    "walstream/formats/context.py": "records",
    "walstream/kafka/cluster.py": _SERVERS,
    "walstream/kafka/fencing.py": _SERVERS,
    "walstream/kafka/last.py": _SERVERS,
    "walstream/kafka/outbox.py": _SERVERS,
    "walstream/kafka/reader.py": _SERVERS,
    "walstream/kafka/sink.py": _SERVERS,
    "walstream/kafka/topics.py": _SERVERS,
    "walstream/metrics.py": "constants",
    "walstream/options.py": "a record",
    "walstream/polling/__init__.py": "a docstring",
    "walstream/polling/look.py": _SERVERS,
    "walstream/polling/order.py": _SERVERS,
    "walstream/polling/reader.py": _SERVERS,
    "walstream/polling/source.py": _SERVERS,
    "walstream/polling/table.py": _SERVERS,
    "walstream/ports.py": "protocols: walstream.testing keeps them",
    "walstream/postgres/capture.py": _SERVERS,
    "walstream/postgres/catalog.py": _SERVERS,
    "walstream/postgres/checks/beginning.py": _SERVERS,
    "walstream/postgres/checks/blocker.py": _SERVERS,
    "walstream/postgres/checks/inspection.py": _SERVERS,
    "walstream/postgres/checks/published.py": _SERVERS,
    "walstream/postgres/checks/reading.py": _SERVERS,
    "walstream/postgres/checks/wanted.py": "records",
    "walstream/postgres/companion.py": _SERVERS,
    "walstream/postgres/creation.py": _SERVERS,
    "walstream/postgres/holder.py": _SERVERS,
    "walstream/postgres/room.py": _SERVERS,
    "walstream/postgres/server.py": _SERVERS,
    "walstream/postgres/slot.py": _SERVERS,
    "walstream/postgres/slots.py": _SERVERS,
    "walstream/postgres/survey.py": _SERVERS,
    "walstream/postgres/timeline.py": _SERVERS,
    "walstream/resetting.py": _SERVERS,
    "walstream/rewinding.py": _SERVERS,
    "walstream/run.py": "starts processes: tests/fault",
    "walstream/session.py": _SERVERS,
    "walstream/sink_checks.py": _SERVERS,
    "walstream/sink_rules.py": "tests/unit/test_dry_sink.py",
    "walstream/sinks.py": _SERVERS,
    "walstream/slots.py": _SERVERS,
    "walstream/spark/__init__.py": "a docstring",
    "walstream/spark/chunks.py": _SERVERS,
    "walstream/spark/keyset.py": _SERVERS,
    "walstream/spark/outlet.py": _SERVERS,
    "walstream/spark/poll.py": _SERVERS,
    "walstream/spark/reader.py": _SERVERS,
    "walstream/spark/sender.py": _SERVERS,
    "walstream/spark/table.py": _SERVERS,
    "walstream/spark/task.py": _SERVERS,
    "walstream/sql/__init__.py": "a docstring",
    "walstream/sql/psycopg2_text.py": _SERVERS,
    "walstream/sql/psycopg_text.py": _SERVERS,
    "walstream/sql/transactions.py": _SERVERS,
    "walstream/standing/facts.py": "records",
    "walstream/standing/sight.py": _SERVERS,
    "walstream/status.py": _SERVERS,
    "walstream/supervisor.py": "starts processes: tests/fault",
    "walstream/source_state.py": _SERVERS,
    "walstream/worker_process.py": "starts processes: tests/fault",
    "walstream/streamed.py": _SERVERS,
}
_SERVED = ("walstream/demo/",)  # run as a whole


def test_every_module_has_a_unit_test_of_its_name() -> None:
    missing = {
        str(module)
        for module in modules()
        if not unit_test_of(module).exists() and not str(module).startswith(_SERVED)
    }
    assert missing <= WITHOUT.keys()


def test_every_reason_is_still_needed() -> None:
    assert all(
        (ROOT / name).exists()
        and not unit_test_of((ROOT / name).relative_to(ROOT)).exists()
        for name in WITHOUT
    )
