"""Verification of the schemes: `python -m validation schemes`.

Two kinds of checks. *Theory*: simulated cells against what the rules of a scheme say on paper (`fluid` and
`laws` say it without a line of the schemes' code). *Comparison*: the same emulated paths for a scheme of
ours, the kernel's, and our program inside the kernel.

`check` is what a check is, `registry` lists all of them, `cells` and `states` make and read the runs,
`theory/` has one file per kind of check, `grid` and `compare` the comparison, `work` does it all and keeps
what is done, `document` and `figures` write the report.
"""
