"""The verbs people use: what a view, a command or a screen asks the broker to do."""
