"""The README and the pages are run: examples, commands, and the output they print."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import hcdv

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
RUN = {"python", "console", "bash", "sh"}
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|output varies): (?P<reason>[^>]+?) -->\n+)?"
    r"^```(?P<language>[a-z]+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Blocks that are shown and not run, by page; the reason stands above each on the page.
NOT_RUN = {
    "README.md": 3, "CONTRIBUTING.md": 1, "bench.md": 2, "coming-from.md": 5, "explorer.md": 2,
    "labels.md": 1,
    "living-data.md": 2, "scale.md": 4, "start.md": 1,
}  # fmt: skip


class Block(NamedTuple):
    """One fenced example of a page, and how it is marked."""

    language: str
    body: str
    mark: str
    reason: str


def blocks(page: str) -> list[Block]:
    found = (
        match.group("language", "body", "mark", "reason") for match in FENCE.finditer(page)
    )
    return [
        Block(language, body, mark or "", reason or "")
        for language, body, mark, reason in found
        if language in RUN
    ]


def commands(body: str) -> list[tuple[str, str]]:
    """Split a console block into commands and the output printed under each."""
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    return [
        (command.strip(), output)
        for command, _, output in (p.partition("\n") for p in parts)
    ]


def differs(want: str, got: str) -> str:
    """Say how the output printed on a page differs from what came, or nothing."""
    checker = doctest.OutputChecker()
    if not want.strip() or checker.check_output(want, got, LOOSE):
        return ""
    return checker.output_difference(doctest.Example("", want), got, LOOSE)


def run_python(body: str, names: dict[str, object]) -> None:
    if not body.startswith(">>> "):
        exec(compile(body, "<page>", "exec"), names)
        return
    session = doctest.DocTestParser().get_doctest(body, names, "page", None, 0)
    runner = doctest.DebugRunner(optionflags=LOOSE)
    runner.run(session, clear_globs=False)
    names.update(session.globs)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Run a command line in a folder of its own, with this tree's hcdv as the command."""
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "hcdv"
    start = "from hcdv.apps.cli import main; main()"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{start}' \"$@\"\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = os.pathsep.join(
        [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    environment = os.environ | {
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "80",
    }

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}"
        return done.stdout

    return run


def run_page(page: str, shell) -> None:
    """Run the blocks of a page in order, in one folder and one namespace."""
    names: dict[str, object] = {"__name__": "__page__"}
    for block in blocks(page):
        if block.mark == "not run":
            continue
        if block.language == "python":
            run_python(block.body, names)
        elif block.language == "console":
            for line, want in commands(block.body):
                got = shell(line)
                assert block.mark or not (difference := differs(want, got)), (
                    f"$ {line}\n{difference}"
                )
        else:
            shell(block.body)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.name,
)
def test_what_a_page_shows_runs_and_prints_what_it_says(page, shell):
    run_page(page.read_text(encoding="utf-8"), shell)


def test_what_is_shown_and_not_run_is_counted():
    skipped = {}
    for page in PAGES:
        marked = [
            b for b in blocks(page.read_text(encoding="utf-8")) if b.mark == "not run"
        ]
        if marked:
            skipped[page.name] = len(marked)
    assert skipped == NOT_RUN


def test_a_page_that_shows_wrong_output_is_caught(shell):
    with pytest.raises(AssertionError, match="Expected"):
        run_page("```console\n$ echo one\ntwo\n```\n", shell)


def test_a_page_whose_command_fails_is_caught(shell):
    with pytest.raises(AssertionError, match="exit 3"):
        run_page("```console\n$ exit 3\n```\n", shell)


def test_a_page_whose_python_fails_is_caught(shell):
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", shell)
    with pytest.raises(doctest.DocTestFailure):
        run_page("```python\n>>> 1 + 1\n3\n```\n", shell)


def test_a_marked_block_is_left_alone_and_keeps_its_reason(shell):
    page = "<!-- not run: it would stop here -->\n```bash\nexit 1\n```\n"
    run_page(page, shell)
    assert blocks(page)[0].reason == "it would stop here"


def _modules_with_examples() -> list[str]:
    names = [info.name for info in pkgutil.walk_packages(hcdv.__path__, "hcdv.")]
    sources = {name: importlib.util.find_spec(name) for name in names}
    return [
        name
        for name, spec in sources.items()
        if spec and spec.origin and ">>> " in Path(spec.origin).read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_the_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=LOOSE)
    assert result.attempted > 0
    assert result.failed == 0


def _cli_reference():
    path = ROOT / "docs" / "_ext" / "cli_reference.py"
    spec = importlib.util.spec_from_file_location("cli_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_reference_is_current():
    reference = _cli_reference()
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == reference.render(), "run make reference"


def test_every_command_and_option_says_what_it_does():
    group = _cli_reference().group()
    silent = [name for name, command in group.commands.items() if not command.help]
    for name, command in group.commands.items():
        silent += [
            f"{name} {parameter.opts[0]}"
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.help
        ]
    assert silent == []


def test_every_public_name_is_on_the_page_of_names():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = set(hcdv.__all__) - {"__version__"}
    assert {name for name in names if f"hcdv.{name}\n" not in page} == set()


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([a-z-]+)$", index, flags=re.MULTILINE))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages == listed


def test_every_link_of_the_readme_leads_somewhere():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_tables_of_the_pages_are_those_of_the_results():
    path = ROOT / "benchmarks" / "tables.py"
    spec = importlib.util.spec_from_file_location("tables", path)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    shown = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        shown += len(tables.PLACE.findall(text))
        assert tables.with_tables(text) == text, f"{page.name}: python benchmarks/tables.py"
    assert shown > 0
