"""Reports for CI servers: each condition of a gate as a test case of a JUnit file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from relcore.base.text import visible

SUFFIX = ".xml"
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class GateCase:
    """A condition that a gate judged.

    Attributes
    ----------
    group, name : str
        What was judged: a situation and a quantity, for example.
    told : str
        The measured value beside its limit, in words.
    failed : bool
    skipped : str
        The reason why the condition was not judged; "" if it was.
    """

    group: str
    name: str
    told: str
    failed: bool = False
    skipped: str = ""


def junit(suite: str, cases: Sequence[GateCase], sentence: str = "") -> bytes:
    """A JUnit file with one test suite: a test case for each condition, and the sentence of the report as the
    output of the suite. A condition that was not judged counts as skipped, even if it failed.
    """
    failures = sum(case.failed and not case.skipped for case in cases)
    counts = {
        "name": f"relscope {suite}",
        "tests": str(len(cases)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(sum(bool(case.skipped) for case in cases)),
        "time": "0",
    }
    root, element = _suite(counts)
    for case in cases:
        one = _test_case(element, suite, case.group, case.name)
        if case.skipped:
            ElementTree.SubElement(one, "skipped", {"message": _allowed(case.skipped)})
        elif case.failed:
            failure = {"message": _allowed(case.told), "type": "alarm"}
            ElementTree.SubElement(one, "failure", failure).text = _allowed(case.told)
        ElementTree.SubElement(one, "system-out").text = _allowed(case.told)
    ElementTree.SubElement(element, "system-out").text = "\n".join(map(_allowed, sentence.splitlines()))
    return _bytes(root)


def junit_of_error(suite: str, message: str) -> bytes:
    """A JUnit file of a command that ended with an error before it could judge: one test case, with the
    message of the error.
    """
    counts = {
        "name": f"relscope {suite}",
        "tests": "1",
        "failures": "0",
        "errors": "1",
        "skipped": "0",
        "time": "0",
    }
    root, element = _suite(counts)
    one = _test_case(element, suite, "run", "ends without an error")
    attributes = {"message": _allowed(message), "type": "error"}
    ElementTree.SubElement(one, "error", attributes).text = _allowed(message)
    return _bytes(root)


def _suite(counts: dict[str, str]) -> tuple[ElementTree.Element, ElementTree.Element]:
    """The root of a file, and its only test suite."""
    root = ElementTree.Element("testsuites", counts)
    return root, ElementTree.SubElement(root, "testsuite", counts)


def _test_case(element: ElementTree.Element, suite: str, group: str, name: str) -> ElementTree.Element:
    place = f"relscope.{suite.replace(' ', '.')}.{group}"
    attributes = {"classname": _allowed(place), "name": _allowed(name), "time": "0"}
    return ElementTree.SubElement(element, "testcase", attributes)


def _bytes(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _allowed(text: str) -> str:
    """The text on one line, without characters that XML forbids."""
    return _FORBIDDEN.sub("�", visible(text))
