"""A run on disk: one folder, whole or not there at all, from which nothing is executed."""

from hcdv.store.checking import check
from hcdv.store.folder import check_new, read_about, write_file
from hcdv.store.querying import query
from hcdv.store.saving import load, plain, save
from hcdv.store.writer import Writer, updating

__all__ = [
    "Writer",
    "check",
    "check_new",
    "load",
    "plain",
    "query",
    "read_about",
    "save",
    "updating",
    "write_file",
]
