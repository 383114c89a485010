"""What is said of the bundled packages: their licences, and the C library they need.

`python bundle.py licences SITE OUT SHOWN` collects the licence files of each installed
distribution into OUT, with a copyright file that lists them all.
`python bundle.py glibc FOLDER` prints the newest version that a shared object asks for.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

_LICENCE: Final = re.compile(r"licen[cs]e|copying|notice|authors", re.IGNORECASE)
_SYMBOL: Final = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_HEAD: Final = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: walstream
Comment: The packages below are bundled; the texts are in {folder}.

Files: *
Copyright: the authors of walstream
License: Apache-2.0
"""
_BUNDLED: Final = """
Files: */{name}*
Copyright: the authors of {name} {version}
License: {licence}
"""


def licences(site: Path, out: Path, shown: str) -> None:
    """Copy the licence files of all in `site` to `out`; list them beside it."""
    found = sorted(distributions(path=[str(site)]), key=lambda one: one.name.lower())
    stanzas = [_HEAD.format(folder=shown)]
    for one in found:
        _copy(one, out / one.name)
        licence = " ".join(_licence(one).split())
        values = {"name": one.name, "version": one.version, "licence": licence}
        stanzas.append(_BUNDLED.format(**values))
    (out.parent / "copyright").write_text("".join(stanzas), "utf-8")


def _copy(one: Distribution, folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in one.files or ():
        inside = any(part.endswith(".dist-info") for part in file.parts)
        if inside and _LICENCE.search(file.name):
            shutil.copyfile(str(file.locate()), folder / file.name)
    if not any(folder.iterdir()):  # then its metadata alone say it
        text = f"{one.name} {one.version}: {_licence(one)}\n"
        (folder / "LICENSE").write_text(text, "utf-8")


def _licence(one: Distribution) -> str:
    told = _field(one, "License-Expression")
    trove = [
        line.rpartition(" :: ")[2]
        for line in one.metadata.get_all("Classifier", [])
        if line.startswith("License :: ")
    ]
    first = _field(one, "License").split("\n")[0]
    return told or " or ".join(trove) or first or "see its files"


def _field(one: Distribution, name: str) -> str:
    return str((one.metadata.get_all(name) or [""])[0])


def glibc(folder: Path) -> str:
    """Give the newest version of glibc that something in it was linked against."""
    return ".".join(map(str, max(_versions(folder), default=(2, 17))))


def _versions(folder: Path) -> Iterator[tuple[int, int]]:
    for file in folder.rglob("*.so*"):
        for major, minor in _SYMBOL.findall(file.read_bytes()):
            yield int(major), int(minor)


if __name__ == "__main__":
    if sys.argv[1] == "glibc":
        sys.stdout.write(glibc(Path(sys.argv[2])) + "\n")
    else:
        licences(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
