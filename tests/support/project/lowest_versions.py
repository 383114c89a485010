"""The lowest versions that pyproject.toml allows, as pip's constraints: `make lowest`.

Only what the product needs at run time: the tools that test it may be the newest.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.support.project.own_coverage import ROOT

EXTRAS: Final = ("demo", "mysql", "spark")
_LOWEST: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<lowest>[\w.]+)")


def project() -> dict[str, Any]:
    """Read the project's table of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return dict(found["project"])


def needed(table: Mapping[str, Any]) -> list[str]:
    """Give what the product needs, its extras too."""
    extras = table["optional-dependencies"]
    return [*table["dependencies"], *(one for name in EXTRAS for one in extras[name])]


def constraints(needs: list[str]) -> Iterator[str]:
    """Pin each to the lowest version that it allows."""
    for need in needs:
        found = _LOWEST.match(need)
        if found is None:
            raise ValueError(f"{need} has no lower bound")
        yield f"{found['name']}=={found['lowest']}"


def main() -> None:
    sys.stdout.write("\n".join(constraints(needed(project()))) + "\n")


if __name__ == "__main__":
    main()
