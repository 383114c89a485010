"""The published schema of `status --json` is made from its records."""

import json

from tests.support.project.own_coverage import ROOT
from walstream.status.model import adapter


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = json.loads((ROOT / "docs/schemas/status.json").read_text())
    assert adapter().json_schema(mode="serialization") == published
