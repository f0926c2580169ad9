"""How the command line fails and stops: one line, the right exit status, never a traceback."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from typing import Any

import click

from hcdv.errors import HCDVError

_LINE = "hcdv.line"


class Commands(click.Group):
    """A group of commands whose errors are told as one line; click itself tells misuse."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the line, so that an interrupted command can be shown again."""
        ctx.meta[_LINE] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # for programmers; what matters is in the notes
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has seen enough, as in `hcdv show run | head -1`
        except MemoryError as error:
            _fail(
                ctx, f"memory must hold the work, got too little: {error or 'none left'}. Value "
                "fewer rows or columns at a time, or use a larger machine.",
            )  # fmt: skip
        except (HCDVError, OSError) as error:
            _fail(ctx, _told(error))
        except KeyboardInterrupt:
            line = shlex.join(["hcdv", *ctx.meta[_LINE]])
            click.echo(
                "\nhcdv: stopped; nothing was written. To begin again, with the same values "
                f"at the end if the seed is the same: {line}", err=True,
            )  # fmt: skip
            ctx.exit(130)


def _told(error: Exception) -> str:
    if isinstance(error, HCDVError):
        return str(error)
    named = getattr(error, "filename", None)
    where = f"'{named}': " if named is not None else ""
    return f"{where}{getattr(error, 'strerror', None) or error}."


def _fail(ctx: click.Context, message: str) -> None:
    click.echo(f"hcdv: {' '.join(message.split())}", err=True)
    ctx.exit(1)


def as_json(data: Any) -> None:
    """Print plain data for another program."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def step(what: str, *, quiet: bool) -> None:
    """Say what is being done, to a person at a terminal only."""
    if not quiet and sys.stderr.isatty():
        click.echo(f"{what} …", err=True)


def one_format(*, csv_: bool, json_: bool) -> None:
    """Refuse two formats at once."""
    if csv_ and json_:
        raise click.UsageError("--csv and --json cannot both be given.")
