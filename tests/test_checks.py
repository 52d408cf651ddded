"""Sentences for bad input: what is allowed comes back plain, what is not is named with its value."""

import math
import re

import numpy as np
import pytest

from kscore import checks


def rejects(call, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        call()


NOT_NUMBERS = ["1", None, True, 1j, [1.0], np.True_]


@pytest.mark.parametrize("check", [checks.number, checks.variance, checks.positive])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(check, value):
    rejects(lambda: check("x", value), f"x must be a number, got {value!r}")


@pytest.mark.parametrize("check", [checks.number, checks.variance, checks.positive])
@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan")])
def test_what_is_not_finite_is_refused(check, value):
    rejects(lambda: check("x", value), f"x must be finite, got {value}")


@pytest.mark.parametrize("check", [checks.number, checks.variance, checks.positive])
@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(3)])
def test_numbers_come_back_as_plain_floats(check, value):
    assert type(check("x", value)) is float and check("x", value) == value


def test_the_bounds_of_a_number_belong_to_it():
    assert [checks.number("x", value, low=0, high=1) for value in (0, 1)] == [0, 1]
    assert checks.number("x", 0, low=0, below=1) == 0
    assert checks.number("x", -1e100) == -1e100 and checks.number("x", 1e100) == 1e100
    rejects(lambda: checks.number("x", 1, low=0, below=1), "x must be at least 0 and less than 1, got 1")
    rejects(lambda: checks.number("x", -0.1, low=0, high=1), "x must be between 0 and 1, got -0.1")
    rejects(lambda: checks.number("x", 1.1, low=0, high=1), "x must be between 0 and 1, got 1.1")
    rejects(lambda: checks.number("x", 1.1e100), "x must be between -1e+100 and 1e+100, got 1.1e+100")


def test_a_variance_may_be_zero_unless_it_must_be_positive():
    assert checks.variance("x", 0) == 0 and checks.variance("x", 9e200) == 9e200
    assert checks.variance("x", 5e-324, positive=True) == 5e-324
    rejects(lambda: checks.variance("x", 0, positive=True), "x must be positive, got 0")
    rejects(lambda: checks.variance("x", -1), "x must be between 0 and 1e+201, got -1")
    rejects(lambda: checks.variance("x", 1.1e201), "x must be between 0 and 1e+201, got 1.1e+201")


def test_positive_is_above_zero():
    assert checks.positive("x", 5e-324) == 5e-324
    for value in (0, -1.0):
        rejects(lambda value=value: checks.positive("x", value), f"x must be positive, got {value}")


def test_whole_numbers_are_counted_from_their_lowest():
    assert type(checks.whole("n", np.int32(1))) is int and checks.whole("n", 10**30) == 10**30
    assert checks.whole("n", 0, low=0) == 0 and checks.whole("n", 9, high=9) == 9
    rejects(lambda: checks.whole("n", 0), "n must be a whole number of at least 1, got 0")
    rejects(lambda: checks.whole("n", 10, high=9), "n must be a whole number of at least 1 and at most 9, got 10")
    for value in (1.0, True, "1", None, np.float64(2)):
        rejects(lambda value=value: checks.whole("n", value), f"n must be a whole number of at least 1, got {value!r}")


def test_a_seed_is_what_a_table_can_hold():
    assert checks.seed("seed", 0) == 0 and checks.seed("seed", 2**63 - 1) == 2**63 - 1
    for value in (-1, 2**63):
        rejects(
            lambda value=value: checks.seed("seed", value),
            f"seed must be a whole number of at least 0 and at most {2**63 - 1}, got {value}",
        )


def test_a_flag_is_true_or_false():
    assert checks.flag("x", True) is True and checks.flag("x", False) is False
    for value in (1, 0, None, "True"):
        rejects(lambda value=value: checks.flag("x", value), f"x must be True or False, got {value!r}")


def test_a_choice_names_the_nearest_word_if_one_is_near():
    assert checks.choice("x", "one", iter(["one", "two"])) == "one"
    rejects(
        lambda: checks.choice("x", "tow", ["one", "two"]),
        "x must be one of 'one', 'two', got 'tow' (did you mean 'two'?)",
    )
    rejects(lambda: checks.choice("x", 5, ["one"]), "x must be one of 'one', got 5")


def test_a_series_is_a_copy_of_plain_floats():
    given = np.array([1.0, 2.0])
    checks.series("z", given)[0] = 9
    assert given.tolist() == [1, 2]
    assert checks.series("z", np.array([1, 2], np.uint8)).dtype == float
    assert checks.series("z", [[1, 2]], dims=(1, 2)).shape == (1, 2)
    assert checks.series("z", [1e100, -1e100]).tolist() == [1e100, -1e100]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            np.ma.array([1.0, 2.0], mask=[False, True]),
            "z must be an array without a mask, got masked_array(data=[1.0, --]",
        ),
        (
            [np.ma.array([1.0, 2.0], mask=[False, True])],
            "z must be an array without a mask, got [masked_array(data=[1.0",
        ),
        ([[1, 2], [3]], "z must be an array of numbers, got [[1, 2], [3]]"),
        ([True], "z must be an array of numbers, got [True]"),
        (None, "z must be an array of numbers, got None"),
        (1.0, "z must be 1-D or 2-D (time, streams), got shape ()"),
        ([], "z must hold at least one value, got shape (0,)"),
        ([1, -1.1e100], "z must be finite and at most 1e+100 in size, got -1.1e+100 at index 1"),
        ([[1, 2], [3, math.nan]], "z must be finite and at most 1e+100 in size, got nan at index (1, 1)"),
    ],
    ids=repr,
)
def test_what_is_no_series_is_named(values, sentence):
    rejects(lambda: checks.series("z", values, dims=(1, 2)), sentence)


def test_a_long_series_is_not_repeated_in_full():
    with pytest.raises(ValueError) as raised:
        checks.series("z", ["word"] * 1000)
    assert len(str(raised.value)) < 260


def test_arrays_are_of_exactly_the_shape_that_is_asked_for():
    assert checks.array("x", [[1, 2], [3, 4]], shape=(2, 2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert checks.array("x", 3, shape=()) == 3.0
    given = np.ones(2)
    checks.array("x", given, shape=(2,))[0] = 5
    assert given.tolist() == [1, 1]
    rejects(lambda: checks.array("x", [1, 2], shape=(2, 1)), "x must have the shape (2, 1), got (2,)")
    rejects(lambda: checks.array("x", [[1], [2, 3]], shape=(2,)), "x must be an array of numbers, got [[1], [2, 3]]")
    rejects(lambda: checks.array("x", [], shape=(2,)), "x must hold at least one value, got shape (0,)")


@pytest.mark.parametrize("value", ["no_such_module:It", "decimal:Missing", "decimal", ".decimal:Clamped", ":Clamped"])
def test_what_cannot_be_imported_is_refused(value):
    rejects(
        lambda: checks.outside("thing", value, ArithmeticError),
        f"thing must name a class that can be imported as package.module:Class, got {value!r}: ",
    )


@pytest.mark.parametrize("value", ["decimal:Decimal", "decimal:getcontext"])
def test_what_is_of_another_kind_is_refused(value):
    rejects(
        lambda: checks.outside("thing", value, ArithmeticError),
        f"thing must name a subclass of builtins.ArithmeticError, got {value!r}",
    )


def test_a_class_from_outside_is_found_by_its_place():
    assert checks.outside("thing", "decimal:Overflow", ArithmeticError).__name__ == "Overflow"


class Refuses:
    """Refuses to become an array, as a tensor does that carries gradients."""

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


@pytest.mark.parametrize("odd", [{1, 2}, Refuses(), [Refuses()], object(), {"a": 1}, [[1], [1, 2]], None, "12", b"12"])
def test_what_is_no_series_gets_a_sentence(odd):
    for check in (checks.series, lambda name, value: checks.array(name, value, shape=(2,))):
        with pytest.raises(ValueError, match="^returns must "):
            check("returns", odd)
