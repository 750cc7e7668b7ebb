"""The page of the package on an index has no link or picture that leads to a file beside the README."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="builds the package")
ROOT = Path(__file__).parents[1]
HOME = "https://code.example/relscope"


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("package_page", ROOT / ".ci/metadata.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(hook, home):
    readme = {"version": "1.2.3"}
    hook.PackagePage(str(ROOT), {"home": home}).update(readme)
    return readme


def test_links_and_pictures_are_absolute_and_exist(hook):
    text = page(hook, f"{HOME}/")["readme"]["text"]
    places = re.findall(rf"\({HOME}/(raw|blob)/v1\.2\.3/([^)#]+)[^)]*\)", text)
    assert {kind for kind, _ in places} == {"raw", "blob"}
    assert all((ROOT / place).exists() for _, place in places)
    assert not re.findall(r"\]\((?!https://)[^)]*\)", text)
    assert text.count(f"]({HOME}/raw/") == (ROOT / "README.md").read_text(encoding="utf-8").count("![")


def test_without_an_address_the_words_stay(hook):
    metadata = page(hook, "")
    text = metadata["readme"]["text"]
    assert "urls" not in metadata
    assert "![" not in text
    assert not re.findall(r"\]\((?!https://)[^)]*\)", text)
    assert "- Models of a provider: OpenAI" in text


def test_the_build_calls_the_hook():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    assert (ROOT / settings["path"]).is_file()
    source = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {f"/{settings['path']}", "/README.md"} <= {*source}  # a wheel is also built of the source archive
    assert {"readme", "urls"} <= {*project["project"]["dynamic"]}
