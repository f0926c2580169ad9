"""Stage I: from rows of any kind to vectors, x → z."""
