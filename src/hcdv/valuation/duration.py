"""Durations as people say them."""

from __future__ import annotations


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{max(seconds, 0.1):.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
