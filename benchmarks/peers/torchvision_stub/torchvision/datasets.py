"""Every name of this module is a stand-in."""

from torchvision import stand_in as __getattr__  # noqa: F401 - PEP 562
