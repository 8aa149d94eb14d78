"""Checks of the laboratory itself: `python -m validation schemes` and `python -m validation tunnel`.

Both are campaigns of the ordinary executor (`campaign`). Their records are compared with closed forms and
other implementations (`schemes`), and with the same path without a tunnel (`tunnel`).
"""
