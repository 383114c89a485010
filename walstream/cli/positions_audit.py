"""Layout of an audit for people."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from walstream.cli.output import (
    print_finding,
    print_findings,
    print_hanging,
    table,
)
from walstream.config import Config
from walstream.kafka.delivery_audit import PartitionAudit, TopicAudit
from walstream.kafka.delivery_verdict import Agreement
from walstream.lsn import show
from walstream.status.positions.audit_model import Audit, SinkAudit, SourceAudit
from walstream.telemetry.terminal import escape

_STYLES: Final = {
    Agreement.AGREE: ("✓", "green"),
    Agreement.REPEATED: ("!", "yellow"),
    Agreement.UNKNOWN: ("!", "yellow"),
    Agreement.FOREIGN: ("✗", "bold red"),
    Agreement.MISSING: ("✗", "bold red"),
}
_MOST: Final = 30  # lines of one sink


def print_audit(out: Console, found: Audit, config: Config) -> None:
    """Print each source: its sides, its sinks, and the partitions to be looked at."""
    if not found.sources:
        out.print("no postgres source is configured")
    for index, source in enumerate(found.sources):
        if index:
            out.print()
        _print_source(out, source, config)


def _print_source(out: Console, found: SourceAudit, config: Config) -> None:
    head = Text(f"source {found.source}: ", style="bold")
    out.print(head + _verdict(found.verdict))
    out.print(_sides(found))
    if (gap := found.missing) is not None:
        text = f"changes from {show(gap.begins)} to {show(gap.ends)}: {gap.why}"
        print_hanging(out, Text("  ") + _verdict(Agreement.MISSING, text))
    for sink in found.sinks:
        _print_sink(out, sink)
    if found.start.problem is not None:
        print_finding(out, found.start.problem, config.command)
    print_findings(out, found.problems, config.command)


def _verdict(verdict: Agreement, text: str = "") -> Text:
    sign, style = _STYLES[verdict]
    said = f": {escape(text)}" if text else ""
    return Text(f"{sign} {verdict}{said}", style=style)


def _sides(found: SourceAudit) -> Table:
    state, slot, server = found.state, found.slot, found.server
    made = table("", "LSN", "timeline", "system")
    for column in made.columns:
        column.overflow = "fold"  # no digit may be missing
    made.add_row(
        "state folder: position",
        _lsn(state.resume if state else None),
        _text(state.timeline if state else None),
        _text(state.system_identifier if state else None),
    )
    made.add_row("slot: confirmed", _lsn(slot.confirmed_lsn if slot else None), "", "")
    made.add_row(
        "server: end of WAL",
        _lsn(server.flush_lsn if server else None),
        _text(server.timeline if server else None),
        _text(server.system_identifier if server else None),
    )
    return made


def _lsn(lsn: int | None) -> str:
    return "-" if lsn is None else show(lsn)


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _print_sink(out: Console, found: SinkAudit) -> None:
    head = Text("  ") + Text(f"sink {escape(found.sink)}: ", style="bold")
    print_hanging(out, head + _verdict(found.verdict, found.text))
    lines = list(_lines(found))
    for line in islice(lines, _MOST):
        print_hanging(out, Text("    ") + line, indent=6)
    if len(lines) > _MOST:
        more = f"and {len(lines) - _MOST:,} more: --json has all"
        out.print(Text(f"    {more}", style="dim"))


def _lines(found: SinkAudit) -> Iterator[Text]:
    """Yield what is worth a look, the worst first."""
    order = list(Agreement)
    by_verdict = sorted(
        found.topics, key=lambda one: order.index(one.verdict), reverse=True
    )
    for topic in by_verdict:
        if topic.why:
            yield _line(topic.topic, topic.verdict, topic.why)
        else:
            yield from _of_topic(topic)


def _of_topic(topic: TopicAudit) -> Iterator[Text]:
    """Yield neighbouring partitions of which the same is to be said, as one."""
    worth = [one for one in topic.partitions if one.why or one.left_out]
    for (verdict, why), alike in groupby(worth, lambda one: (one.verdict, one.why)):
        found = list(alike)
        last = max((one.last for one in found if one.last is not None), default=0)
        up_to = f", up to {show(last)}" if last else ""
        what = f"{why or 'left out, since Kafka has it'}{up_to}"
        yield _line(f"{topic.topic}[{_numbers(found)}]", verdict, what)


def _numbers(found: Iterable[PartitionAudit]) -> str:
    """Write partition numbers: 0-3, 7."""
    numbers = [one.partition for one in found]
    runs = [[numbers[0], numbers[0]]]
    for number in numbers[1:]:
        if number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _line(where: str, verdict: Agreement, what: str) -> Text:
    sign, style = _STYLES[verdict]
    return Text(f"{sign} {escape(where)}: ", style=style) + Text(
        escape(f"{verdict}: {what}"), style="dim"
    )
