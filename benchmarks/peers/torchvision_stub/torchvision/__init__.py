"""Stands in for torchvision so that opendataval imports; nothing to do with images works.

The published torchvision wheel does not load beside a CPU build of torch, and
opendataval imports it even for k-nearest-neighbour values.
"""

__version__ = "0.0.0-stub"


class Anything:
    """Whatever is asked for by name; refuses to be used."""

    def __init__(self, *_args, **_settings):
        pass

    def __call__(self, *_args, **_settings):
        raise RuntimeError("torchvision is replaced by a stub here.")


def stand_in(name):
    """Serve as a submodule's __getattr__."""
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Anything,), {})
