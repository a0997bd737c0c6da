"""Tests of the statements: their headers, their plans, and what they do against rivals on connections of their own."""
