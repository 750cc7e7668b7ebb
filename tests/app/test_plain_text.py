"""What `plain` writes for Streamlit's Markdown; `tests/browser/test_hostile_browser.py` reads what a
browser makes of it.
"""

from __future__ import annotations

import pytest

from app.plain_text import plain, plain_html, plain_name

JOINER = "\N{WORD JOINER}"


@pytest.mark.parametrize("text", ["snake_case.npz", "12:30 is 1.5 × 2", "a, b; c: d (e) “f” 'g'"])
def test_a_usual_name_stays_as_it_is(text):
    assert plain(text).replace(JOINER, "").replace("\\", "") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**b** _i_ `c` ~s~", r"\*\*b\*\* \_i\_ \`c\` \~s\~"),
        ("![x](y) <b> $a$ |c|", r"!\[x\](y) \<b\> \$a\$ \|c\|"),
        ("a&lt;b & c", r"a\&lt;b & c"),
        ("# head", r"\# head"),
        ("1. one", f"1{JOINER}. one"),
        (":red[x] :star: http://a.b", rf":{JOINER}red\[x\] :{JOINER}star: http:{JOINER}//a.b"),
        ("www.a.b me@a.b", f"www{JOINER}.a.b me@{JOINER}a.b"),
        ("a -> b -- c", f"a -{JOINER}\\> b -{JOINER}- c"),
        ("two\n\nlines\t \u2028here", "two lines here"),
        ("\x1b[31m\u202eabc\u200b", "�\\[31m�abc�"),
    ],
)
def test_what_markdown_reads_is_escaped(text, expected):
    assert plain(text) == expected


def test_a_long_text_is_cut():
    assert plain("a" * 10**7, most=10) == "a" * 9 + "…"
    assert len(plain_name("*" * 10**7)) == 2 * 119 + 1


def test_html_keeps_line_breaks_and_escapes_the_rest():
    assert plain_html('<b a="1">\n\x1b') == "&lt;b a=&quot;1&quot;&gt;\n�"
