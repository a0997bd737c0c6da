"""The bench: each measurement once, with numbers so small that only its shape and its cleaning up can be judged."""
