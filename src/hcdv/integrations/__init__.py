"""Bridges to the harnesses of other libraries."""
