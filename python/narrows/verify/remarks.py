"""Explanations of what stays outside or near a tolerance, written by people who looked at the states.

By scheme and reference; they stand in the document below the comparison.
"""

REMARKS: dict[tuple[str, str], str] = {}
