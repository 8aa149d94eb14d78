"""The summary per scheme, metrics and verdicts in words, tables for people."""
