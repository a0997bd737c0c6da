"""Commands of the example app."""
