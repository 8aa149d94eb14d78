"""Narrows: an open laboratory for Internet congestion control.

One scenario file, run in a simulator or in a real-time emulator, recorded packet by packet, judged and
reported. On the command line: `narrows run first-look`.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
