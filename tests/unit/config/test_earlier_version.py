"""The configuration file of a version that may be installed is read by this one."""

import re
from pathlib import Path

import pytest

from tests.support.project import earlier_version
from tests.unit.config.test_documentation import ENVIRONMENT
from walstream.config import load

WHY = earlier_version.absent()


@pytest.mark.skipif(bool(WHY), reason=WHY)
def test_every_key_of_the_earlier_file_is_understood(tmp_path: Path) -> None:
    shipped = earlier_version.text("walstream.toml")
    path = tmp_path / "walstream.toml"
    path.write_text(shipped, "utf-8")
    assert load(path, ENVIRONMENT).sources.keys() == {"app"}
    path.write_text(re.sub(r"(?m)^#: ", "", shipped), "utf-8")
    # a key that is not known is an error
    config = load(path, ENVIRONMENT)
    assert config.sources.keys() == {"app", "legacy", "upstream"}
