"""Commands that only the drills use."""
