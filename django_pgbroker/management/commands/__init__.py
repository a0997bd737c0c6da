"""One command a file: parse, delegate, print."""
