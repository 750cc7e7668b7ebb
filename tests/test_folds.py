"""Which expressions the lint counts as choices that are hidden inside another expression."""

import ast

import pytest

from tests.folds import HIDDEN, folds


def hidden(text: str) -> int:
    return sum(rule is HIDDEN for rule, _ in folds(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "for x in a if c else b: pass",
        "y = [x for x in (a if c else b)]",
        "y = [*([a] if c else [])]",
        "y = {'a': 1, **({'b': 2} if c else {})}",
        "f(**({'b': 2} if c else {}))",
        "(a if c else b).f()",
        "(a if c else b)(x)",
        "y = x + (a if c else b)",
        "y = [a] * bool(c)",
        "y = [*steps * (n > 1)]",
        "y = c and {'a': 1}",
        "y = [b, a][c]",
        "y = n - (a == b)",
        "n += a == b",
        "y = {True: a, False: b}[c]",
        "y = {1: a}.get(c, b)",
        "f(first_of_all(these_rows) if condition_holds else second_of_all(these))",
    ],
)
def test_a_choice_that_does_not_look_like_one_is_hidden(text):
    assert hidden(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "y = a if c else b",
        "def f(): return a if c else b",
        "f(a if c else b)",
        "y = [a if c else b for c in d]",
        "y = {'a': a if c else b}",
        "y = values * (lengths > 0)",
        "y = {1: a, 2: b}[c]",
        "y = pair[: 1 + c]",
        "y = a and b",
    ],
)
def test_a_short_choice_in_sight_and_a_mask_of_numbers_are_not(text):
    assert hidden(text) == 0
