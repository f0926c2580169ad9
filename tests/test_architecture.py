"""The rules of the house that a machine can check, each shown to catch what it forbids."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "hcdv"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = sorted(SRC.rglob("*.py"))
MATHS = ("embedding", "hierarchy", "valuation", "functional", "guarantees")
MATHS_MAY_LOAD = {"numpy", "scipy", "threadpoolctl", "hcdv"}

SWALLOWED = {
    # "file::function": why catching everything there, without raising again, is right
    "valuation/training.py::train_and_score": "failed fits are counted and told",
}


def _name(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def _walk(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of the function it is in."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield inside, node
        yield from _walk(node, node.name if named else inside)


def _dotted(node: ast.AST) -> str:
    """Write np.random.seed for the expression np.random.seed, and "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _dotted(node.test).endswith("TYPE_CHECKING")


def _loaded_at_once(tree: ast.Module) -> set[str]:
    """Name the top packages a module loads when it is itself imported."""
    body = [node for node in tree.body if not _is_for_types(node)]
    direct = [
        n for n in body if isinstance(n, ast.Import | ast.ImportFrom | ast.If | ast.Try)
    ]
    names = _imports(ast.Module(direct, []))
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)


def prints(tree: ast.AST) -> list[str]:
    return [
        f"line {node.lineno}: print"
        for _, node in _walk(tree)
        if isinstance(node, ast.Call) and _dotted(node.func) == "print"
    ]


def global_randomness(tree: ast.AST) -> list[str]:
    """Find draws from, and seeds of, the generators that the whole process shares."""
    own = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox", "BitGenerator"}
    found = []
    for _, node in _walk(tree):
        name = _dotted(node)
        if (
            name.startswith(("np.random.", "numpy.random."))
            and name.split(".")[2] not in own
        ):
            found.append(f"line {node.lineno}: {name}")
    found += [f"import {n}" for n in _imports(tree) if n.partition(".")[0] == "random"]
    return found


def loads_that_run_code(tree: ast.AST) -> list[str]:
    """Find what unpickles, that is, what runs whatever a file tells it to run."""
    modules = ("pickle", "cloudpickle", "dill", "marshal")
    readers = ("load", "loads", "Unpickler")
    calls = {f"{module}.{reader}" for module in modules for reader in readers}
    calls |= {"joblib.load", "torch.load", "pd.read_pickle", "pandas.read_pickle"}
    found = [f"import {name}" for name in _imports(tree) if name in {*calls, "shelve"}]
    for _, node in _walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func) in calls:
            found.append(f"line {node.lineno}: {_dotted(node.func)}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            found += [] if refused else [f"line {node.value.lineno}: allow_pickle"]
    return found


def swallowed_errors(tree: ast.AST) -> list[str]:
    """Name the functions that catch everything and do not raise again."""
    found = []
    for inside, node in _walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        everything = any(
            kind is None or _dotted(kind) in {"Exception", "BaseException"}
            for kind in kinds
        )
        if everything and not any(isinstance(n, ast.Raise) for n in ast.walk(node)):
            found.append(inside)
    return found


def arrows_up(module: str, tree: ast.AST) -> list[str]:
    """Find imports of a floor above, or of an independent room on the same floor."""
    floor = _floors()
    own = module.split(".")[1]
    found = []
    for name in _imports(tree):
        parts = name.split(".")
        if parts[0] != "hcdv" or len(parts) < 2 or parts[1] not in floor or parts[1] == own:
            continue
        if any(name.startswith(allowed) for allowed in _allowed_up().get(module, ())):
            continue
        (level, independent), (other, _) = floor[own], floor[parts[1]]
        if other < level or (other == level and independent):
            found.append(f"{module} imports {name}")
    return found


def _floors() -> dict[str, tuple[int, bool]]:
    """Read the floor of every room, top first, from the import-linter contract."""
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    return {
        room.strip(): (level, "|" in line)
        for level, line in enumerate(contract["layers"])
        for room in line.replace("|", ":").split(":")
    }


def _allowed_up() -> dict[str, list[str]]:
    """Read the few arrows that the contract lets point up, by the module they start from."""
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    found: dict[str, list[str]] = {}
    for arrow in contract["ignore_imports"]:
        start, _, end = arrow.partition(" -> ")
        found.setdefault(start, []).append(f"{end}.")
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    return ast.Module([node for node in tree.body if not _is_for_types(node)], [])


def long_functions(tree: ast.AST, limit: int = 70) -> list[str]:
    """Name functions of more lines than the limit, their docstrings not counted."""
    found = []
    for _, node in _walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            if lines > limit:
                found.append(f"{node.name}: {lines} lines")
    return found


@pytest.fixture(params=FILES, ids=_name)
def module(request) -> tuple[str, ast.Module]:
    path: Path = request.param
    return _name(path), ast.parse(path.read_text(encoding="utf-8"))


def test_no_file_is_a_drawer_for_everything():
    drawers = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    assert [_name(path) for path in FILES if path.name in drawers] == []


def test_a_module_opens_with_one_sentence_on_its_job(module):
    name, tree = module
    first = (ast.get_docstring(tree) or "").split("\n\n")[0]
    assert first.rstrip().endswith((".", ":")), f"{name} opens with {first!r}"


def test_a_file_can_be_read_in_one_sitting(module):
    name, tree = module
    lines = len((SRC / name).read_text(encoding="utf-8").splitlines())
    assert lines <= 450, f"{name} has {lines} lines; split it"
    assert long_functions(tree) == []


def test_only_the_command_line_prints(module):
    name, tree = module
    assert name.startswith("apps/") or prints(tree) == []


def test_no_module_touches_the_global_random_state(module):
    assert global_randomness(module[1]) == []


def test_nothing_that_is_loaded_can_run_code(module):
    assert loads_that_run_code(module[1]) == []


def test_an_error_is_swallowed_only_for_a_written_reason(module):
    name, tree = module
    assert {f"{name}::{function}" for function in swallowed_errors(tree)} <= set(SWALLOWED)


def test_every_written_reason_for_swallowing_is_still_needed():
    found = {
        f"{_name(path)}::{function}"
        for path in FILES
        for function in swallowed_errors(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert set(SWALLOWED) <= found


def test_imports_point_down(module):
    name, tree = module
    dotted = "hcdv." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if dotted == "hcdv.__init__":
        return  # the contents page may name everything
    assert dotted.split(".")[1] in _floors(), f"{name} is on no floor of the contract"
    assert arrows_up(dotted, _without_type_checking(tree)) == []


def test_a_maths_room_loads_numpy_and_scipy_alone(module):
    name, tree = module
    if name.split("/")[0].removesuffix(".py") in MATHS:
        assert _loaded_at_once(tree) <= MATHS_MAY_LOAD


def _modules_after(code: str) -> set[str]:
    environment = os.environ | {"PYTHONPATH": str(SRC.parent)}
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_the_package_loads_the_standard_library_alone():
    before, after = _modules_after("pass"), _modules_after("import hcdv")
    assert after - before - set(sys.stdlib_module_names) == {"hcdv"}


def test_the_pure_mathematics_needs_no_tables_and_no_torch():
    loaded = _modules_after("from hcdv import functional, guarantees")
    assert loaded.isdisjoint({"torch", "sklearn", "pandas", "pyarrow"})


def test_every_waiver_of_a_style_rule_has_its_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = text.partition("\nignore = [")[2].partition("[tool.ruff.lint.pydocstyle]")[0]
    waivers = [line for line in lint.splitlines() if line.lstrip().startswith('"')]
    bare = [line for line in waivers if "#" not in line and not line.endswith("[")]
    assert waivers
    assert bare == []


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (prints, "def f():\n    print(1)"),
        (global_randomness, "np.random.seed(0)"),
        (global_randomness, "rng = np.random.RandomState(0)"),
        (global_randomness, "from random import random"),
        (loads_that_run_code, "from pickle import loads"),
        (loads_that_run_code, "import pickle\npickle.load(file)"),
        (loads_that_run_code, "joblib.load(path)"),
        (loads_that_run_code, "np.load(path, allow_pickle=True)"),
        (swallowed_errors, "try:\n    f()\nexcept Exception:\n    pass"),
        (swallowed_errors, "try:\n    f()\nexcept:\n    pass"),
        (long_functions, "def f():\n" + "    x = 1\n" * 71),
    ],
)
def test_each_check_catches_what_it_forbids(check, bad):
    assert check(ast.parse(bad)) != []


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (global_randomness, "rng = np.random.default_rng(0)"),
        (loads_that_run_code, "np.load(path, allow_pickle=False)"),
        (swallowed_errors, "try:\n    f()\nexcept Exception as e:\n    raise E from e"),
        (swallowed_errors, "try:\n    f()\nexcept ValueError:\n    pass"),
    ],
)
def test_no_check_forbids_what_is_right(check, good):
    assert check(ast.parse(good)) == []


def test_an_arrow_up_or_across_is_caught():
    up = ast.parse("from hcdv.estimator import HCDV")
    across = ast.parse("import hcdv.hierarchy.tree")
    down = ast.parse("from hcdv.errors import DataError")
    assert arrows_up("hcdv.valuation.nested", up) != []
    assert arrows_up("hcdv.embedding.tables", across) != []
    assert arrows_up("hcdv.embedding.tables", down) == []
