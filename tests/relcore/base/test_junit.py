"""JUnit files parse, count what they hold, and keep no character that XML forbids."""

from xml.etree import ElementTree

from relcore.base.junit import GateCase, junit, junit_of_error

CASES = (
    GateCase("rows", "zero rows", "0 (allowed: 0)"),
    GateCase("rows", "rows of class '<a&b>'", "3\x00\x1b\ufffe \ud800 (allowed: 0)", failed=True),
    GateCase("new_queries", "lost", ".5 (allowed: .01)", failed=True, skipped="does not decide"),
)


def test_a_condition_is_passed_failed_or_skipped():
    [suite] = ElementTree.fromstring(junit("passport check", CASES, "One.\nTwo."))
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "relscope passport check",
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    passed, failed, skipped = suite.findall("testcase")
    assert [one.tag for one in passed] == ["system-out"]
    assert failed.get("name") == "rows of class '<a&b>'"
    assert failed.find("failure").get("type") == "alarm"
    assert "(allowed: 0)" in failed.find("failure").text
    assert skipped.find("skipped").get("message") == "does not decide"
    assert skipped.find("failure") is None
    assert skipped.get("classname") == "relscope.passport.check.new_queries"
    assert suite.findtext("system-out") == "One.\nTwo."


def test_an_error_is_one_case_that_is_no_failure():
    [suite] = ElementTree.fromstring(junit_of_error("passport check", "new.npy:\x00 no <file>"))
    counts = ("tests", "failures", "errors", "skipped")
    assert [suite.get(name) for name in counts] == ["1", "0", "1", "0"]
    [case] = suite.findall("testcase")
    assert case.get("classname") == "relscope.passport.check.run"
    assert "no <file>" in case.find("error").get("message")
