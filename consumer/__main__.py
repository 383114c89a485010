"""The consumer library for people who write no code: `python -m consumer --help`.

Parses, calls and prints; `tail` shows ops, `mirror` applies them to another database.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from consumer.basic import BasicConsumer
from consumer.errors import SchemasAway, SchemasRefused
from consumer.idempotent import IdempotentConsumer
from consumer.mirror import PostgresMirror, TransactionMirror
from consumer.op import ConsumerRecord, Op
from consumer.state.connection import refusal
from consumer.tail import line, other_line
from consumer.transactions import TransactionConsumer
from walstream.errors import ConfigError, WalstreamError
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.telemetry import runtime

_DSN_VARIABLE: Final = "CONSUMER_TARGET_DSN"
_EPILOG: Final = """
-X sets a property of librdkafka. --kafka-file reads such properties from a file, which
keeps passwords out of the process list. Both commands run until SIGINT or SIGTERM, and
wait for a target that does not answer. Exit codes: 0 stopped by a signal, 1 an op that
could not be handled, 2 usage, 3 another source or topic (an operator decides), 4 a
right is missing, 5 a server does not answer.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; give the exit code."""
    options = _parser().parse_args(arguments)
    shown = logging.StreamHandler()
    # of drivers only warnings and worse: what else they say may hold a password
    shown.addFilter(
        lambda record: (
            record.levelno >= logging.WARNING
            or record.name.partition(".")[0] in {"consumer", "walstream"}
        )
    )
    logging.raiseExceptions = False  # a full disk under the log is no error of ours
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[shown],
    )
    try:
        if options.verb == "tail":
            _tail(options)
        else:
            _mirror(options)
    except WalstreamError as error:
        return _failed(error)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        text, code = _refused(error)
        sys.stderr.write(f"error: {text}\n")
        return code
    return 0


def _refused(
    error: psycopg.OperationalError | psycopg.ProgrammingError,
) -> tuple[str, int]:
    """Return why the target cannot be used, and the exit code."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"the target's role lacks a right: {error.diag.message_primary}", 4
    if isinstance(error, psycopg.ProgrammingError):
        if error.sqlstate is not None:
            return f"the target refuses it: {error.diag.message_primary}", 2
        # its text may quote a password
        return "the target's DSN cannot be read: host=… dbname=…, or postgresql://…", 2
    return f"the target does not answer: {refusal(error)}", 5


def _tail(options: argparse.Namespace) -> None:
    kafka = _kafka(options)
    if options.new:
        kafka["auto.offset.reset"] = "latest"

    group = options.group or f"tail-{runtime.token_hex(6)}"
    _Tail(
        group=group,
        topics=options.topic,
        kafka=kafka,
        unavailable=options.unavailable,
        registry=_registry(options),
        as_json=options.json,
    ).run()


class _Tail(BasicConsumer):
    """Shows what holds no op, too, where another consumer skips it or stops."""

    def __init__(self, *, as_json: bool, **options: Any) -> None:
        self._as_json = as_json
        super().__init__(self._show, **options)

    def _show(self, op: Op) -> None:
        self._write(op.record, line(op))

    def _write(self, record: ConsumerRecord, text: str) -> None:
        """Write a line, or the record's value as JSON."""
        if self._as_json:
            text = (self._decoder.as_json(record).value or b"").decode()
        # one write, since partitions are read by a thread each
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _op_of(self, record: ConsumerRecord) -> Op | None:
        try:
            op, error = super()._op_of(record), None
        except (SchemasAway, SchemasRefused):
            raise
        except WalstreamError as refused:
            op, error = None, refused
        if op is None and record.value is not None:
            text = self._other(record, error)
            if text is not None:
                self._write(record, text)
        return op

    def _other(
        self, record: ConsumerRecord, error: WalstreamError | None
    ) -> str | None:
        """Show what has no op, or raise the error that says that it cannot be read."""
        try:
            text = other_line(self._decoder.as_json(record, named=True))
        except (SchemasAway, SchemasRefused):
            raise
        except WalstreamError:
            text = None
        if text is None and error is not None:
            raise error
        return text


def _mirror(options: argparse.Namespace) -> None:
    if not options.target:
        raise ConfigError("no target", hint=f"--target DSN, or {_DSN_VARIABLE}")
    conninfo_to_dict(options.target)  # raises ProgrammingError
    if options.transactions is not None:
        _transaction_mirror(options)
        return
    mirror = PostgresMirror(
        options.target,
        tables=options.table or ["*"],
        patience_s=options.patience,
        row_positions=options.row_positions or None,
        skip_truncates=options.skip_truncates,
    )
    IdempotentConsumer(
        mirror,
        options.target,
        group=options.group,
        topics=options.topic,
        kafka=_kafka(options),
        accept_source=options.accept_source,
        unavailable=options.unavailable,
        registry=_registry(options),
        connections=options.connections,
        pipeline=psycopg.Pipeline.is_supported(),
    ).run()


def _transaction_mirror(options: argparse.Namespace) -> None:
    mirror = TransactionMirror(
        options.target,
        tables=options.table or ["*"],
        skip_truncates=options.skip_truncates,
    )
    TransactionConsumer(
        mirror,
        options.target,
        group=options.group,
        topics=options.topic,
        transactions=options.transactions,
        kafka=_kafka(options),
        memory=options.memory << 20,
        accept_source=options.accept_source,
        unavailable=options.unavailable,
        registry=_registry(options),
    ).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}",
        description="Read walstream's topics: print each change, or mirror the tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    tail = verbs.add_parser("tail", help="print each op on one line, at least once")
    mirror = verbs.add_parser(
        "mirror", help="apply each op exactly once to tables with the same columns"
    )
    for verb in (tail, mirror):
        _common(verb)
    tail.add_argument("--group", help="continue this group; default: a new one")
    tail.add_argument("--new", action="store_true", help="skip existing records")
    tail.add_argument("--json", action="store_true", help="print records unchanged")
    _mirror_arguments(mirror)
    return parser


def _common(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "topic",
        nargs="+",
        help="a topic, a pattern with * and ?, or a regular expression after ^",
    )
    verb.add_argument("--kafka", default="localhost:9092", help="bootstrap servers")
    verb.add_argument(
        "-X",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of librdkafka",
    )
    verb.add_argument("--kafka-file", type=Path, help="a file of NAME=VALUE lines")
    verb.add_argument(
        "--unavailable",
        default=UNAVAILABLE,
        metavar="TEXT",
        help="Debezium's placeholder of a value that was not sent",
    )
    verb.add_argument(
        "--registry", metavar="URL", help="the registry of records' schemas"
    )
    verb.add_argument(
        "--registry-file",
        type=Path,
        help="a file of NAME=VALUE lines: how to log in there",
    )
    verb.add_argument("-v", "--verbose", action="store_true", help="log more (info)")


def _mirror_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--group", required=True, help="the consumer group")
    verb.add_argument(
        "--target",
        default=os.environ.get(_DSN_VARIABLE),
        help=f"DSN of the database to write to; default: {_DSN_VARIABLE}",
    )
    verb.add_argument(
        "--table", action="append", help="schema.table, with * and ?; default: all"
    )
    verb.add_argument(
        "--patience",
        type=float,
        default=60,
        help="seconds to retry an op that a constraint refuses; default: 60",
    )
    verb.add_argument(
        "--row-positions",
        action="store_true",
        help="an older op never overwrites a newer one: for split_key_updates = false",
    )
    verb.add_argument(
        "--skip-truncates",
        action="store_true",
        help="skip each TRUNCATE of format debezium: you empty the table yourself",
    )
    verb.add_argument(
        "--connections",
        type=_at_least_one,
        default=8,
        metavar="N",
        help="maximum number of sessions with the target; default: 8",
    )
    verb.add_argument(
        "--transactions",
        metavar="TOPIC",
        help="apply whole transactions in their order; TOPIC tells them (txinfo)",
    )
    verb.add_argument(
        "--memory",
        type=_at_least_one,
        default=64,
        metavar="MB",
        help="of ops that wait for --transactions, in memory; default: 64",
    )
    verb.add_argument(
        "--accept-source", help="continue with this source, as the error prints it"
    )


def _at_least_one(text: str) -> int:
    number = int(text)  # argparse tells of a ValueError
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _kafka(options: argparse.Namespace) -> dict[str, str]:
    lines = [*_lines(options.kafka_file), *options.X]
    return {"bootstrap.servers": options.kafka, **_pairs(lines, "Kafka")}


def _registry(options: argparse.Namespace) -> dict[str, str] | None:
    found = _pairs(_lines(options.registry_file), "a registry")
    if options.registry is not None:
        found["url"] = options.registry
    return found or None


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    kept = (entry.strip() for entry in text.splitlines())
    return [entry for entry in kept if entry and entry[0] != "#"]


def _pairs(lines: Sequence[str], owner: str) -> dict[str, str]:
    pairs = {}
    for entry in lines:
        name, found, value = entry.partition("=")
        if not found:
            raise ConfigError(f"a property of {owner} has the form NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _failed(error: WalstreamError) -> int:
    sys.stderr.write(f"error: {error}\n")
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError):
        return 0  # who read `tail` has seen enough
    if isinstance(cause, WalstreamError):
        sys.stderr.write(f"because: {cause}\n")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
