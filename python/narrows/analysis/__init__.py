"""Summaries per scheme, metrics and verdicts in words, and tables for people."""
