"""The check of CONTRIBUTING's glossary finds the words that its table forbids, in texts alone, and says
where they are.
"""

from tests.glossary import GLOSSARY, pattern, rules, slips, texts

TABLE = """## Glossary
| write | which is | not | in |
|---|---|---|---|
| method | a procedure | `ways`, `way of stitching` | all |
| chance level | a band | `null` | texts |
| again | repeated | `are/is drawn anew` | all |
| Procrustes | a name | `by procrustes` | texts |

## Tests
`ways` of other sections are none of it.
"""


def test_rules_come_from_the_table_alone():
    assert [(rule.write, rule.shown) for rule in rules(TABLE)] == [
        ("method", False),
        ("method", False),
        ("chance level", True),
        ("again", False),
        ("Procrustes", True),
    ]
    assert len(rules(GLOSSARY.read_text(encoding="utf-8"))) > 50


def test_whole_words_match_in_any_case_and_across_lines():
    assert pattern("ways").search("Three Ways.")
    assert not pattern("ways").search("always")
    assert pattern("are/is drawn anew").search("rows are\n    drawn anew")
    assert not pattern("way of stitching").search("in this way, stitching")
    assert pattern("by procrustes", a_name=True).search("by procrustes")
    assert not pattern("by procrustes", a_name=True).search("by Procrustes")


def test_texts_are_literals_docstrings_and_comments_but_no_names(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text('"""First\nline."""\nnull = {"null_low": f"a {1} b"}  # why\n', encoding="utf-8")
    found = {(one.line, one.text, one.shown) for one in texts(file)}
    assert found == {(1, "First\nline.", False), (3, "a {} b", True), (3, "# why", False)}
    file.write_text("# Title\nthe `null` of it\n    cka.null.mean\n", encoding="utf-8")
    json = file.with_suffix(".md")
    file.rename(json)
    assert [one.text for one in texts(json)] == ["# Title\nthe `…` of it\n    cka`…``…`\n"]


def test_a_slip_has_its_file_line_and_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.glossary.ROOT", tmp_path)
    monkeypatch.setattr("tests.glossary.GLOSSARY", tmp_path / "CONTRIBUTING.md")
    (tmp_path / "CONTRIBUTING.md").write_text(TABLE, encoding="utf-8")
    file = tmp_path / "page.py"
    file.write_text('"""Null is fine\nhere, ways are not."""\nx = "The null is not."\n', encoding="utf-8")
    assert list(slips([file])) == ["page.py:2: “ways” → method", "page.py:3: “null” → chance level"]
