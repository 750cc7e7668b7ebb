"""mypy --strict on the bodies of functions, and a ceiling per folder that may only fall: `python tests/typing/bodies.py`,
part of `make lint`. `python tests/typing/bodies.py FOLDER …` lists all that mypy says of some folders, such as relcore/scores.

`check.py` sees only what a caller sees. It reads the same modules afterwards, from the cache of this one. app and pages
are left out, because reading Streamlit takes as long as all the rest.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".venv" / "mypy"  # also that of `check.py`
ARGUMENTS = ("--no-error-summary", "--hide-error-context", f"--cache-dir={CACHE}")

# Most errors of each folder. They may only fall; a folder that is not listed has none.
MOST = {
    "relcore": 6,
    "relcore/agents": 3,
    "relcore/audit": 15,
    "relcore/available": 2,
    "relcore/base": 25,
    "relcore/catalog": 59,
    "relcore/check": 5,
    "relcore/commands": 32,
    "relcore/compare": 48,
    "relcore/drift": 20,
    "relcore/encoders": 61,
    "relcore/figures": 131,
    "relcore/files": 106,
    "relcore/launch": 1,
    "relcore/maps": 17,
    "relcore/migrate": 47,
    "relcore/panes": 3,
    "relcore/project": 5,
    "relcore/runs": 22,
    "relcore/sharded": 12,
    "relcore/stores": 7,
    "relcore/studies": 43,
    "relcore/universe": 12,
}


def folder_of(path: str) -> str:
    """The folder of relcore that a file lies in, or relcore itself."""
    parts = Path(path).parts
    if len(parts) == 2:
        return parts[0]
    return "/".join(parts[:2])


def errors() -> dict[str, list[str]]:
    """What mypy says of the bodies, by folder."""
    command = [sys.executable, "-m", "mypy", *ARGUMENTS, "relcore"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    found = defaultdict(list)
    for line in done.stdout.splitlines():
        path, kind, _ = line.partition(": error: ")
        if kind:
            found[folder_of(path.partition(":")[0])].append(line)
    return found


def main(folders: list[str]) -> int:
    found = errors()
    if folders:
        for folder in folders:
            print(*found.get(folder.rstrip("/"), []), sep="\n")
        return 0
    exceeded = False
    for folder in sorted({*found, *MOST}):
        n = len(found.get(folder, []))
        most = MOST.get(folder, 0)
        if n > most:
            exceeded = True
            print(*found[folder], sep="\n")
            print(
                f"{folder}: expected at most {most} type errors, got {n}; give the new code true types, or assert"
                " what holds"
            )
        if n < most:
            print(f"{folder}: {n} type errors; lower MOST in {Path(__file__).relative_to(ROOT)} from {most}")
    return exceeded


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
