import doctest
import inspect

import pytest

from hcdv import functional


def test_the_public_names_are_the_visible_ones_in_order():
    visible = {
        name
        for name, thing in vars(functional).items()
        if not name.startswith("_") and inspect.isroutine(thing)
    }
    assert functional.__all__ == sorted(visible) == dir(functional)


@pytest.mark.parametrize("name", functional.__all__)
def test_a_public_function_says_what_it_returns_and_is_shown_at_work(name):
    assert (
        (inspect.getdoc(getattr(functional, name)) or "").partition("\n")[0].endswith(".")
    )
    assert f"{name}(" in (functional.__doc__ or "")


def test_the_examples_give_what_they_print():
    results = doctest.testmod(functional, raise_on_error=False)
    assert results.attempted >= len(functional.__all__)
    assert results.failed == 0
