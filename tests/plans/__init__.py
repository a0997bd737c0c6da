"""Statements at the size of years, an old transaction beside them, and ageing."""
