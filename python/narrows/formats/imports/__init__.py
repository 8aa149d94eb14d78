"""Formats that measurements are read from, one module each."""
