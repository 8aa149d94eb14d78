"""What the rules of the schemes say on paper, one law per file; see `validation.schemes.fluid`."""
