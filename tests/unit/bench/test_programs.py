"""What the bench starts is configured as walstream takes it, in every variant."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench import programs
from bench.place import Place
from bench.programs import Variant
from walstream.config import load
from walstream.config.sink import KafkaSinkConfig

ALL = [
    *programs.variants(),
    programs.envelopes(),
    programs.avro("http://127.0.0.1:1"),
    *programs.plain_formats(),
    programs.away(20, "127.0.0.1:9092"),
    *programs.layouts(),
    programs.transactional(),
]


@pytest.mark.parametrize("variant", ALL, ids=lambda one: one.short)
def test_every_variant_is_taken(tmp_path: Path, variant: Variant) -> None:
    servers = {
        "postgres": SimpleNamespace(dsn=lambda: "postgresql://127.0.0.1/bench"),
        "kafka": SimpleNamespace(bootstrap="127.0.0.1:1"),
    }
    place = cast("Place", SimpleNamespace(folder=tmp_path, **servers))
    file = tmp_path / "walstream.toml"
    file.write_text(programs.document(place, variant, "a_name"), "utf-8")
    made = load(file, {})
    assert made.memory == int(variant.memory.removesuffix("MiB")) << 20
    sink = made.sinks["kafka"]
    assert isinstance(sink, KafkaSinkConfig)
    assert sink.format == variant.format
    assert sink.is_transactional == variant.transactional
