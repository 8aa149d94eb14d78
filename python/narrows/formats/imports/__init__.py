"""Import formats, one module each."""
