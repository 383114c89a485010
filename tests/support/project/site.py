"""The documentation as a site with search: `make docs` builds it into build/docs/site.

Pages keep their places below the root, so links work on the site as in the repository.
The build is strict: a link or an anchor that leads nowhere fails it.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.project.own_coverage import ROOT

BUILT: Final = ROOT / "build" / "docs"
_PAGES: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINKED: Final = ("walstream.toml", "packaging/grafana", "packaging/prometheus")


def build(folder: Path) -> Path:
    """Build the site in a folder and return where its pages are."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in (*_PAGES, *_LINKED, "docs"):
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy)
        else:
            shutil.copy(ROOT / name, copy)
    shutil.move(folder / "source" / "docs" / "site.toml", folder / "zensical.toml")
    zensical = Path(sys.executable).with_name("zensical")
    subprocess.run([zensical, "build", "--strict"], cwd=folder, check=True)
    return folder / "site"


def main() -> None:
    try:
        site = build(BUILT)
    except subprocess.CalledProcessError:
        raise SystemExit("the site was not built: see above") from None
    sys.stdout.write(f"look at it: {sys.executable} -m http.server -d {site} 8000\n")


if __name__ == "__main__":
    main()
