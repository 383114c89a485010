"""docs/packages.svg is what the imports say, and shows every package."""

from tests.support.project.own_coverage import ROOT
from tests.support.project.picture import LOOSE, PICTURE, draw, imports, layers


def test_the_picture_is_what_the_imports_say() -> None:
    assert PICTURE.read_text("utf-8") == draw(layers(), imports()), "run `make picture`"


def test_every_package_has_a_row() -> None:
    found = [path.parent.name for path in ROOT.glob("walstream/*/__init__.py")]
    drawn = [name for row in layers() for name in row]
    assert sorted(drawn) == sorted([*found, LOOSE])


def test_no_import_leads_up_or_sideways() -> None:
    floors = {name: floor for floor, row in enumerate(layers()) for name in row}
    for importer, imported in imports():
        assert floors[importer] < floors[imported], (importer, imported)


def test_an_import_more_changes_the_picture() -> None:
    counts = imports()
    more = {**counts, ("kafka", "state"): 1}
    assert draw(layers(), more) != draw(layers(), counts)
