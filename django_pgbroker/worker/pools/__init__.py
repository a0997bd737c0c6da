"""Where handlers run: one pool for each kind of executor, all with the same face."""
