"""The newest results of each profile are kept, and small ones apart."""

import json
from pathlib import Path

import pytest

from bench import results
from bench.programs import PURE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "SMALL", tmp_path / "small")
    monkeypatch.setattr(results, "revision", lambda: "abc")
    monkeypatch.setattr(results, "versions", dict)
    return tmp_path


def test_an_older_document_of_the_profile_goes_and_others_stay(folder: Path) -> None:
    older = folder / "B-20200101T000000.json"
    other = folder / "update-B-20200101T000000.json"
    for path in (older, other):
        path.write_text(json.dumps({"profile": path.name[:-21]}), "utf-8")
    figures = {PURE: [{"rows_per_s": 1.0, "cpu_us_per_row": 1.0, "rss_mb": 1.0}]}
    saved = results.save("B", figures, {}, small=False)
    assert not older.exists()
    assert other.exists()
    (folder / "sinks-20200101T000000.json").write_text('{"runs": 5}')  # no profile
    assert results.newest(folder)["B"] == saved
    assert [goal["met"] for goal in saved["goals"]] == [True, True]


def test_small_results_replace_no_true_ones(folder: Path) -> None:
    true = results.save("start", {PURE: [{"wall_s": 1.0}]}, {}, small=False)
    results.save("start", {PURE: [{"wall_s": 9.0}]}, {}, small=True)
    assert results.newest(folder)["start"] == true
