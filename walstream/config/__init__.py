"""walstream.toml or .yaml and the environment -> one validated Config.

All defaults live in `model`, `source` and `sink`. Every failure is a ConfigError that
names the keys and never shows a secret.
"""

from walstream.config.field import Format
from walstream.config.load import WrittenConfig, load
from walstream.config.model import Config, Http, Spark
from walstream.config.render import mask, schema
from walstream.config.secret import Secrets
from walstream.config.sink import (
    DiscardSink,
    KafkaSinkConfig,
    KeyForm,
    LogSink,
    MappedTopic,
    PackageSink,
    Partitioner,
    Sink,
)
from walstream.config.source import (
    KafkaSource,
    PackageSource,
    PolledTable,
    PostgresSource,
    Source,
    SqlSource,
)

__all__ = [
    "Config",
    "DiscardSink",
    "Format",
    "Http",
    "KafkaSinkConfig",
    "KafkaSource",
    "KeyForm",
    "LogSink",
    "MappedTopic",
    "PackageSink",
    "PackageSource",
    "Partitioner",
    "PolledTable",
    "PostgresSource",
    "Secrets",
    "Sink",
    "Source",
    "Spark",
    "SqlSource",
    "WrittenConfig",
    "load",
    "mask",
    "schema",
]
