"""The contents page: what `import hcdv` offers, and that it says the same everywhere."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import hcdv
from hcdv import errors

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", hcdv.__all__)
def test_a_public_name_can_be_had(name):
    assert getattr(hcdv, name) is not None


def test_the_public_names_are_the_visible_ones_in_order():
    assert dir(hcdv) == sorted(hcdv.__all__)
    assert sorted(hcdv._HOME) == sorted(set(hcdv.__all__) - {"__version__"})


def test_a_type_checker_sees_the_same_names():
    tree = ast.parse(inspect.getsource(hcdv))
    (for_types,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name for statement in for_types.body for alias in statement.names}
    assert seen == set(hcdv._HOME)


def test_every_error_is_public():
    kinds = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.HCDVError)
    }
    assert kinds <= set(hcdv.__all__)


def test_an_unknown_name_is_refused_as_python_does():
    with pytest.raises(AttributeError, match="'hcdv' has no attribute 'HCVD'"):
        _ = hcdv.HCVD


def test_the_version_is_one_number_everywhere():
    assert re.fullmatch(r"\d+\.\d+\.\d+", hcdv.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {hcdv.__version__}\n" in citation


def test_the_package_says_that_it_is_typed():
    assert (Path(hcdv.__file__).parent / "py.typed").exists()
