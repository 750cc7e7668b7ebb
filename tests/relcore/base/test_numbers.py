import pytest

from relcore.base.numbers import band, general, in_cell, percent, short, signed


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.9434, 3, ".943"),
        (-0.0212, 3, "−.021"),
        (-0.0001, 3, ".000"),
        (20_000.4, 1, "20,000.4"),
        (float("nan"), 3, "–"),
    ],
)
def test_scores_have_no_zero_before_the_point_and_a_minus_sign(value, places, text):
    assert short(value, places) == text


def test_a_cell_has_two_decimals_where_they_suffice():
    assert [in_cell(value) for value in (0.784, 0.0042, 0.1, -0.5, float("nan"))] == [
        ".78",
        ".004",
        ".10",
        "−.50",
        "",
    ]


def test_changes_and_bands():
    assert [signed(value) for value in (0.012, -0.021, 0, -0.00001)] == ["+.012", "−.021", "+.000", "+.000"]
    assert band(-0.01, 0.2) == "−.010 … .200"


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, ".0123"), (20_049, "20,000"), (-0.5, "−.5"), (1.5e-7, "1.5e−7")]
)
def test_quantities_of_any_size_have_significant_digits(value, text):
    assert general(value) == text


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0, "0 %"),
        (0.93, "93 %"),
        (0.0096, "1 %"),
        (0.007, "0.7 %"),
        (1 / 19700, "0.005 %"),
        (float("nan"), "–"),
    ],
)
def test_a_share_below_one_percent_keeps_a_digit(share, told):
    assert percent(share) == told
