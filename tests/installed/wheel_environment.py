"""The wheel in an environment that has only the distributions it requires. They are linked from those that
are installed here.
"""

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution

from packaging.requirements import Requirement


def clean_environment(**variables):
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RELSCOPE"))
    } | variables


def run(*command, folder, **variables):
    """What a command prints, run in this folder without a trace of the repository in its environment."""
    settings = {"cwd": folder, "env": clean_environment(**variables)}
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def needed(requirements, extras, found):
    """Add the distributions that these requirements need to `found`, with their extras and their own
    requirements.
    """
    for one in map(Requirement, requirements or ()):
        key = one.name, frozenset(one.extras)
        if key not in found and (
            one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
        ):
            found[key] = distribution(one.name)
            needed(found[key].requires, ["", *one.extras], found)
    return found


def installed(wheel, folder, extras=(), beside=()):
    """Make the folder an environment that has the wheel, its extras, and the distributions `beside`; pip
    checks them.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    asked = re.findall(r"^Requires-Dist: (.*)$", metadata, flags=re.MULTILINE)
    for one in needed([*asked, *beside], ["", *extras], {}).values():
        for top in {file.parts[0] for file in one.files} - {"..", "__pycache__"}:
            link = packages / top
            if not link.exists():
                link.symlink_to(one.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    asked = f"relscope[{','.join(extras)}] @ {wheel.as_uri()}"
    run(*pip, "install", "--quiet", "--no-index", asked, folder=folder)
    return folder
