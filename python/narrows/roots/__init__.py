"""Folders and archives as root file systems of programs: their digests, their programs, and unpacking."""
