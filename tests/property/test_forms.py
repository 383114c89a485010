"""The compiled hot path does, byte for byte, what its Python source does.

Also on bytes that no server sends. The compiled form then passes the tests of the
modules that it is made of, and some on servers.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_debezium import MODES, OIDS, TEXTS
from tests.support.oracles.debezium import VARIANTS
from tests.support.oracles.golden import all_payloads
from tests.support.programs.compiled_form import (
    Form,
    compiled,
    environment,
    form,
    needs_a_compiler,
)
from tests.support.strategies import Stream, messages, streams
from walstream.testing import encode

pytestmark = [pytest.mark.compiled, pytest.mark.takes(90)]  # the first makes it

GOLDEN = sorted(set(all_payloads()))
ROOT = Path(__file__).parents[2]
OWN = [
    *("property/test_pgoutput.py", "property/test_pipeline.py", "property/test_op.py"),
    *("property/test_ledger.py", "property/test_stream.py", "unit/pipeline"),
    *("property/test_debezium.py", "property/test_avro.py"),
    "property/test_json_schema.py",
    *("unit/records", "unit/formats", "unit/kafka/test_topic.py"),
    *("unit/kafka/test_sink.py", "unit/telemetry/test_meter.py", "unit/test_op.py"),
    "unit/test_row.py",
]
SERVED = [
    *("integration/test_backfill.py", "integration/test_polling_beside.py"),
    "integration/test_polled_small.py",
    "integration/test_transactional.py::test_a_position_tells_the_last_transaction",
]
unhurried = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile, once for all workers of a run."""
    needs_a_compiler()
    own = tmp_path_factory.getbasetemp()
    return compiled(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture(scope="module")
def forms(folder: Path) -> Iterator[tuple[Form, Form]]:
    """Start the compiled form, and the pure one of the same wheel."""
    with form(folder, pure=False) as one, form(folder, pure=True) as other:
        yield one, other


def same(forms: tuple[Form, Form], **order: object) -> list[object]:
    one, other = (each.ask(**order) for each in forms)
    assert one == other
    return list(one)


def test_each_is_what_it_is_taken_for(forms: tuple[Form, Form], folder: Path) -> None:
    told = [each.ask() for each in forms]
    assert [name for name, _ in told] == ["compiled", "pure"]
    assert all(where.startswith(str(folder)) for _, where in told)


def test_golden_payloads_and_their_prefixes_decode_alike(
    forms: tuple[Form, Form],
) -> None:
    for payload in GOLDEN:
        sizes = {*range(min(len(payload), 300)), len(payload)}
        same(forms, payloads=[payload[:size].hex() for size in sizes])


@unhurried
@given(
    payloads=st.lists(
        st.binary()
        | st.builds(bytes.__add__, st.sampled_from([b"I", b"U", b"D"]), st.binary())
        | messages.map(encode),
        min_size=1,
    )
)
def test_any_bytes_decode_alike(
    forms: tuple[Form, Form], payloads: list[bytes]
) -> None:
    same(forms, payloads=[payload.hex() for payload in payloads])


@unhurried
@given(payload=st.sampled_from(GOLDEN), data=st.data())
def test_damaged_payloads_decode_alike(
    forms: tuple[Form, Form], payload: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 4))):
        offset = data.draw(st.integers(0, min(len(payload) - 1, 200)))
        damaged[offset] = data.draw(st.integers(0, 255))
    same(forms, payloads=[bytes(damaged).hex()])


@unhurried
@given(stream=streams())
def test_streams_give_the_same_records(
    forms: tuple[Form, Form], stream: Stream
) -> None:
    frames = [frame.hex() for frame in stream.frames()]
    _, _, said = same(forms, frames=frames, start=stream.start)
    assert said == ""


@unhurried
@given(stream=streams(), data=st.data())
def test_streams_out_of_order_end_alike(
    forms: tuple[Form, Form], stream: Stream, data: st.DataObject
) -> None:
    frames = data.draw(st.permutations(stream.frames()))
    same(forms, frames=[frame.hex() for frame in frames], start=stream.start)


@pytest.mark.parametrize("variant", VARIANTS)
def test_debeziums_records_are_the_same(forms: tuple[Form, Form], variant: str) -> None:
    assert len(same(forms, debezium=variant)) > 50


@unhurried
@given(
    values=st.lists(
        st.tuples(
            st.sampled_from(OIDS),
            st.sampled_from([-1, 0, 3, 327686, 198658]),
            TEXTS,
            st.sampled_from(MODES),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_values_are_written_alike_as_debezium_does(
    forms: tuple[Form, Form], values: list[tuple[object, ...]]
) -> None:
    same(forms, values=values)


@pytest.mark.fault_long
def test_the_compiled_form_passes_the_tests_of_its_sources(folder: Path) -> None:
    passes(folder, OWN)


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_the_compiled_form_streams_backfills_and_polls(folder: Path) -> None:
    """On servers, with modules that are not compiled: they may not fit together."""
    passes(folder, SERVED)


def passes(folder: Path, tests: Sequence[str]) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-o", "pythonpath=", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT),
            *("-m", "not fault_long"),
            *(ROOT / "tests" / name for name in tests),
        ],
        cwd=folder,  # where Python looks first
        env=environment(folder, pure=False),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
