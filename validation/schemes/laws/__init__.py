"""The rules of the schemes on paper, one law per file; see `validation.schemes.fluid`."""
