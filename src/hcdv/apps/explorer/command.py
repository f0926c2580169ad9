"""`hcdv explore`: look through a run, and perhaps another beside it, in the browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import click

from hcdv.apps.console import step
from hcdv.apps.options import FILE


@click.command()
@click.argument("run", type=FILE)
@click.argument("other", type=FILE, required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port on this machine to serve at; 0: any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def explore(run: Path, other: Path | None, port: int, *, no_browser: bool) -> None:
    """Look through RUN in the browser: coalitions, rows, suspects, and what a lasso is worth.

    With OTHER, rows and coalitions of the two runs are compared by id. What is decided of
    rows is kept in RUN; nothing else is changed. Only this machine's browser is answered, at
    the address that is printed. Stop it with Ctrl-C.

    \b
    hcdv explore iris.hcdv
    hcdv explore monday.hcdv tuesday.hcdv --port 8765 --no-browser
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps.explorer.server import bound, new_token, serve
    from hcdv.apps.explorer.session import Session
    from hcdv.errors import need

    for package in ("starlette", "uvicorn", "duckdb"):
        need(package, extra="explore", what="hcdv explore")
    with bound(port) as held:
        step(f"opening {run}", quiet=False)
        session = Session(run, other)
        try:
            token = new_token()
            address = f"http://127.0.0.1:{held.getsockname()[1]}/?token={token}"
            click.echo(f"{run}: {address}  (Ctrl-C stops it)")
            sys.stdout.flush()
            if not no_browser:
                webbrowser.open(address)
            serve(session, held, token)
        except KeyboardInterrupt:
            pass
        finally:
            session.close()
    click.echo("hcdv: stopped.", err=True)
