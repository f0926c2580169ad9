"""A run on disk: one folder, whole or not there at all, from which nothing is executed."""

from hcdv.store.folder import check_new, read_about, write_file
from hcdv.store.saving import load, plain, save

__all__ = ["check_new", "load", "plain", "read_about", "save", "write_file"]
