"""The report of a run: facts as plain data, and one HTML file made of them alone."""
