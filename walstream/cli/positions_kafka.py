"""Positions of kafka sources for people, and the tool that moves them."""

from typing import Final

from rich.console import RenderableType

from walstream.cli.output import table
from walstream.config import Config, KafkaSource
from walstream.errors import ConfigError
from walstream.kafka.group import offset_repair
from walstream.status.positions.model import ChainedStanding

_HOW: Final = (
    "stop every instance that shares the group, then move them with Kafka's own tool,"
    " to the oldest records, or with --to-offset NUMBER or --to-datetime"
    " 2026-11-21T06:28:02.000 in its place:"
)


def standing_table(standing: ChainedStanding) -> RenderableType:
    """Put where the group is beside what each partition holds."""
    numbers = ("stored", "first", "end", "behind")
    made = table("topic", "partition", *numbers, right=("partition", *numbers))
    for column in made.columns:
        column.overflow = "fold"  # no digit may be missing
    for one in standing.partitions:
        made.add_row(
            one.topic,
            str(one.partition),
            "-" if one.stored is None else str(one.stored),
            str(one.first),
            str(one.end),
            f"{one.behind:,}",
        )
    return made


def refuse_to_move(config: Config, name: str) -> None:
    """Print where the positions of a kafka source are; return for any other."""
    source = config.source(name)
    if not isinstance(source, KafkaSource):
        return
    commands = [
        offset_repair(source.consumer, source.group, topic, "--to-earliest").command
        for topic in source.topics
    ]
    raise ConfigError(
        f"the positions of the kafka source {name!r} are the offsets of its group"
        f" {source.group!r}: the state folder has none",
        hint="\n  ".join([_HOW, *commands]),
    )
