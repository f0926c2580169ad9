"""`hcdv explore`: a run folder in the browser, served to this machine alone."""
