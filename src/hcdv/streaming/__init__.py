"""Living data, Alg. 2: rows that come, go and change their labels, on the tree there is."""
