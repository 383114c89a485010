"""What is said of the bundled packages: their licences, and the C library they need.

`python bundle.py licences SITE OUT SHOWN` collects the licence files of each installed
distribution into OUT, with a copyright file that lists them all.
`python bundle.py parts SBOM SITE` adds to a bill of materials what wheels bring beside
Python: shared objects of others, and jars, each with its hash.
`python bundle.py glibc FOLDER` prints the newest version that a shared object asks for.
"""

import hashlib
import json
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
        if inside and _LICENCE.search(str(file)):
            # below its distribution's folder: two may have one name
            target = folder.joinpath(*file.parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
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


def add_parts(sbom: Path, site: Path) -> None:
    """Name each library that a wheel holds of somebody else."""
    document = json.loads(sbom.read_text("utf-8"))
    found = document.setdefault("components", [])
    for file in sorted(_parts(site)):
        name, version = _named(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        found.append(
            {
                "type": "library",
                "bom-ref": f"file:{file.relative_to(site)}",
                "name": name,
                **({"version": version} if version else {}),
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [
                    {"name": "walstream:file", "value": str(file.relative_to(site))}
                ],
            }
        )
    sbom.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def _parts(site: Path) -> Iterator[Path]:
    yield from site.glob("*.libs/*.so*")
    yield from site.glob("pyspark/jars/*.jar")


def _named(file: Path) -> tuple[str, str]:
    """Read `libssl-1a2b3c4d.so.3` (a wheel's hash is no version), `guava-32.1.jar`."""
    if file.suffix == ".jar":
        name, _, version = re.sub(r"-(?=\d)", "\n", file.stem, count=1).partition("\n")
        return name, version
    name, _, version = file.name.partition(".so")
    return re.sub(r"-[0-9a-f]{8}$", "", name), version.lstrip(".")


def glibc(folder: Path) -> str:
    """Give the newest version of glibc that something in it was linked against."""
    return ".".join(map(str, max(_versions(folder), default=(2, 17))))


def _versions(folder: Path) -> Iterator[tuple[int, int]]:
    for file in folder.rglob("*.so*"):
        for major, minor in _SYMBOL.findall(file.read_bytes()):
            yield int(major), int(minor)


if __name__ == "__main__":
    if sys.argv[1] == "parts":
        add_parts(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "glibc":
        sys.stdout.write(glibc(Path(sys.argv[2])) + "\n")
    else:
        licences(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
