"""Checks of the laboratory itself, run from the source tree by `narrows verify-schemes` and `verify-tunnel`.

Both are campaigns of the ordinary executor (`campaign`), whose records are held against closed forms, against
other implementations (`schemes`), and against the same path without a tunnel (`tunnel`).
"""
