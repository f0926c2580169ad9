"""Write docs/cli.md from the command line itself, so that the page cannot lag behind it.

Run without arguments to write the page; a test compares the page with `render()`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from hcdv.apps import cli

PAGE = Path(__file__).resolve().parent.parent / "cli.md"
HEAD = """# Command line

<!-- Written by `make reference` from the commands' own help; changes belong there. -->
"""


def group() -> click.Group:
    """Find the command that holds the others."""
    groups = [thing for thing in vars(cli).values() if isinstance(thing, click.Group)]
    main = [thing for thing in groups if thing is cli.main]
    return (main or groups)[0]


def render() -> str:
    """Return the page: one heading a command, its help, its arguments and options."""
    top = group()
    context = click.Context(top, info_name="hcdv")
    parts = [HEAD, *_about(top, context)]
    for name in top.list_commands(context):
        command = top.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        parts += [f"## hcdv {name}\n", *_about(command, inner)]
    return "\n".join(parts)


def _about(command: click.Command, context: click.Context) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [line for each in command.params if (line := _line(each, context))]
    text = _prose(command.help or "")
    listed = "\n".join(["| option | |", "|---|---|", *options]) + "\n"
    return [f"```text\n{usage}\n```\n", text, *([listed] if options else [])]


def _prose(help_text: str) -> str:
    r"""Turn click's help into Markdown: \b marks a block to be left as it is."""
    blocks = []
    for block in inspect.cleandoc(help_text).partition("\f")[0].split("\n\n"):
        if block.startswith("\b"):
            blocks.append("```text\n" + block.lstrip("\b\n").rstrip() + "\n```")
        else:
            blocks.append(block)
    return "\n\n".join(blocks) + "\n"


def _line(parameter: click.Parameter, context: click.Context) -> str:
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return ""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    kind = "" if parameter.is_flag else " " + parameter.make_metavar(context)
    default = parameter.get_default(context, call=False)
    shown = isinstance(default, str | int | float) and not parameter.is_flag
    about = (parameter.help or "").strip()
    if parameter.required:
        about += " Required."
    elif shown:
        about += f" Default: {default}."
    cells = [f"`{names}{kind}`", " ".join(about.split())]
    return " | ".join(["", *(cell.replace("|", "\\|") for cell in cells), ""]).strip()


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(PAGE.name, "written")
