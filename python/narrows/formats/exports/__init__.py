"""Formats that campaigns are written in, one module each."""
