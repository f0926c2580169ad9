"""The measuring stand: every table of the paper, with peers in the same run."""
