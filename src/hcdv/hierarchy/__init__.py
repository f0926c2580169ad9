"""Stage II: from vectors to a balanced tree of coalitions, z → C_0 … C_L."""
