"""Which versions of PostgreSQL have known bugs of logical decoding."""

import pytest

from walstream.postgres.checks.known_bugs import BUGS, look


@pytest.mark.parametrize(
    ("version", "bugs", "best"),
    [
        (150000, 2, "15.16"),
        (150012, 2, "15.16"),
        (150013, 2, "15.16"),  # mends one, and brings another
        (150014, 1, "15.16"),
        (160008, 2, "16.12"),
        (170004, 2, "17.8"),
        (170005, 2, "17.8"),
        (170007, 1, "17.8"),
        (180000, 1, "18.2"),
        (180001, 1, "18.2"),
    ],
)
def test_old_minor_version_is_named_with_the_one_to_update_to(
    version: int, bugs: int, best: str
) -> None:
    (finding,) = look(version)
    assert len(finding.why.split("; ")) == bugs
    assert f"update to {best} " in finding.repair.then
    assert f"{version // 10000}.{version % 10000}" in finding.what


@pytest.mark.parametrize("version", [150016, 150018, 160012, 170008, 180002, 190000])
def test_mended_version_is_not_named(version: int) -> None:
    assert not list(look(version))


def test_loss_of_changes_is_said_of_versions_that_lose_them() -> None:
    lossy = BUGS[0].what
    assert lossy in next(look(170004)).why
    assert lossy not in next(look(170005)).why
