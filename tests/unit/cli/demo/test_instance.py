"""The configuration that the demo writes is one that `walstream run` takes."""

from pathlib import Path

from walstream.cli.demo.instance import SLOT, configure
from walstream.config import KafkaSinkConfig, PostgresSource, load
from walstream.service.feature_support import refuse_unsupported


def test_configuration_is_valid_and_names_the_servers(tmp_path: Path) -> None:
    dsn = "postgresql://postgres@127.0.0.1:5432/postgres"
    config = load(configure(tmp_path, dsn, "127.0.0.1:9092"))

    refuse_unsupported(config)
    source, sink = config.sources["shop"], config.sinks["kafka"]
    assert isinstance(source, PostgresSource)
    assert isinstance(sink, KafkaSinkConfig)
    assert (str(source.dsn), source.slot) == (dsn, SLOT)
    assert sink.producer["bootstrap.servers"] == "127.0.0.1:9092"
    assert Path(config.state).parent == tmp_path
