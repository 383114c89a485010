"""How much of each module its own unit test covers: `make cover-own`.

A module covered only by other modules' tests breaks far from where it is tested. What
starts processes is covered by the integration tests, and stands low here.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("walstream", "consumer")


def main() -> None:
    shares = {
        module: own_percent(module, test)
        for module in modules()
        if (test := unit_test_of(module)).exists()
    }
    for module, percent in sorted(shares.items(), key=lambda item: item[1]):
        sys.stdout.write(f"{percent:3d} %  {module}\n")


def modules() -> list[Path]:
    found = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return [path.relative_to(ROOT) for path in found if path.name != "__init__.py"]


def unit_test_of(module: Path) -> Path:
    inside = (
        module.relative_to("walstream") if module.parts[0] != "consumer" else module
    )
    return ROOT / "tests" / "unit" / inside.with_name(f"test_{inside.name}")


def own_percent(module: Path, test: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        coverage = [sys.executable, "-m", "coverage"]
        data = f"--data-file={folder}/coverage"
        run = [*coverage, "run", data, f"--include={module}", "-m", "pytest", "-q"]
        subprocess.run([*run, str(test)], cwd=ROOT, check=True, capture_output=True)
        report = [*coverage, "report", data, "--format=total"]
        answer = subprocess.run(report, cwd=ROOT, check=True, capture_output=True)
    return int(answer.stdout)


if __name__ == "__main__":
    main()
