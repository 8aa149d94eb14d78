"""Checks of simulated runs against theory, one kind per file."""
