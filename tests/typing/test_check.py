"""`check.py` counts lines as the text does, and tells what a checker misses and finds beside."""

from tests.typing.check import MISTAKES, examples, faults


def test_the_lines_of_an_example_are_those_of_its_text():
    text = "# Title\n\n```python\nx = 1\ny = 2\n```\n```sh\nls\n```\n\n```py\nz = 3\n```\n"
    found = dict(examples(text))
    assert [code.splitlines()[before:] for before, code in found.items()] == [["x = 1", "y = 2"], ["z = 3"]]
    assert all(text.splitlines()[before] == code.splitlines()[before] for before, code in found.items())


def test_what_is_missed_and_what_is_found_beside_is_told():
    marked = [
        number
        for number, line in enumerate(MISTAKES.read_text(encoding="utf-8").splitlines(), start=1)
        if "# mistake:" in line
    ]
    assert len(marked) == 6
    found = {(str(MISTAKES), number, "wrong") for number in marked}
    assert faults("mypy", found, {}) == []
    assert faults("mypy", found - {(str(MISTAKES), marked[2], "wrong")}, {}) == [
        f"tests/typing/mistakes.py:{marked[2]}: mypy finds no mistake"
    ]
    beside = found | {("/made/scripts_4.py", 9, "no such name")}
    assert faults("pyright", beside, {"/made/scripts_4.py": "docs/scripts.md"}) == [
        "docs/scripts.md:9: pyright: no such name"
    ]
