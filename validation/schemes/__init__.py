"""Verification of the schemes: `python -m validation schemes`.

Two kinds of checks. *Theory*: simulated cells against the consequences of a scheme's rules (`fluid` and
`laws` compute them without any of the schemes' code). *Comparison*: the same emulated paths for our scheme,
the kernel's, and our program inside the kernel.

`check` defines a check, `registry` lists all of them, `cells` and `states` make and read the runs, `theory/`
has one file per kind of check, `grid` and `compare` the comparison, `work` runs everything and stores
results, `document` and `figures` write the report.
"""
