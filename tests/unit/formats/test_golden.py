"""Each format writes a workload with all types as it did when it was recorded.

A difference changes what users' readers get: `python -m tests.data.formats.record
--formats` writes the files anew.
"""

import json

import pytest

from tests.support.oracles.golden import FORMATS, WORKLOAD, written


@pytest.mark.parametrize("name", FORMATS)
def test_records_are_those_of_the_golden_file(name: str) -> None:
    golden = WORKLOAD.with_name(f"{name}.txt").read_bytes().split(b"\n")[:-1]
    found = list(written(name))
    for number, (line, wanted) in enumerate(zip(found, golden, strict=False), 1):
        assert line == wanted, f"record {number}"
    assert len(found) == len(golden)


@pytest.mark.parametrize("name", FORMATS)
def test_golden_records_are_json(name: str) -> None:
    for line in WORKLOAD.with_name(f"{name}.txt").read_bytes().splitlines():
        json.loads(line.partition(b"\t")[2])
