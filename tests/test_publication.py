"""What others copy of Relscope, the citation, the paper, the image and the recipe, says what the package says."""

import re
import tomllib
from pathlib import Path

import yaml

import relcore
from app.server import guard
from relcore.runs.entries import ENVIRONMENT

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_citation_and_recipe_have_the_version_and_the_licence_of_the_package():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert (citation["version"], citation["license"]) == (relcore.__version__, PROJECT["license"])
    assert citation["abstract"].rstrip(".") == PROJECT["description"]
    assert f'set version = "{relcore.__version__}"' in text("docs/conda/meta.yaml")


def test_the_recipe_needs_what_the_package_needs():
    """Names that conda-forge has under others: matplotlib, msgspec and safetensors."""
    recipe = yaml.safe_load(re.sub(r"\{%.*%\}|\{\{ (\w+) \}\}", r"\1", text("docs/conda/meta.yaml")))
    names = {
        "matplotlib-base": "matplotlib",
        "msgspec-python": "msgspec",
        "python-safetensors": "safetensors",
    }
    needs = [line.split(" ", 1) for line in recipe["requirements"]["run"]]
    python, *others = [(names.get(name, name), bound) for name, bound in needs]
    assert python == ("python", PROJECT["requires-python"])
    assert ["".join(pair) for pair in others] == PROJECT["dependencies"]


def test_the_container_listens_where_its_space_asks():
    """Its header stands in docs/running.md; the commands are those of the Makefile and of relscope."""
    port = yaml.safe_load(
        re.search(r"^---\n(.*?)^---", text("docs/running.md"), re.DOTALL | re.MULTILINE)[1]
    )["app_port"]
    image = text("Dockerfile")
    assert f"EXPOSE {port}" in image
    assert f'"--port", "{port}"' in image
    assert ".venv/installed:" in text("Makefile").replace("$(INSTALLED)", ".venv/installed")


def test_the_container_keeps_its_store_and_is_checked_where_no_token_is_needed():
    image = text("Dockerfile")
    [store] = re.findall(r"^VOLUME (\S+)", image, re.MULTILINE)
    assert f"ENV {ENVIRONMENT}={store}\n" in image
    [health] = re.findall(r"urlopen\('http://127\.0\.0\.1:7860(\S+)'\)", image)
    assert health == guard.HEALTH


def test_what_the_container_copies_first_is_all_that_the_packages_need():
    image = text("Dockerfile")
    [copied] = re.findall(r"^COPY --chown=user (Makefile .*) \./$", image, re.MULTILINE)
    [needed] = re.findall(r"^\.venv/packages: (.*)$", text("Makefile"), re.MULTILINE)
    assert set(copied.split()) == {"Makefile", "requirements.txt", *needed.split()}
