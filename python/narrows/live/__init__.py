"""Emulated runs watched while they are under way, in a terminal or on a page, and changed from there."""
