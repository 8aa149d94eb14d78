"""Checks of simulated runs against what the rules say on paper, one kind per file."""
