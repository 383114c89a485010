"""The script that makes the project walstream-consumer, for tests: a module elsewhere.

Its folder's name is a library's too, so that it is loaded by its path.
"""

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Final

from tests.support.project.own_coverage import ROOT

SCRIPT: Final = ROOT / "packaging" / "consumer" / "stage.py"
ALIAS: Final = ROOT / "packaging" / "consumer" / "alias"


def script() -> Any:
    spec = spec_from_file_location("stage", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
