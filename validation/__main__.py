"""`python -m validation`: the program with the checks of the laboratory itself."""

from __future__ import annotations

from narrows.cli import run_program
from validation.program import program

if __name__ == "__main__":
    run_program(lambda: program(prog_name="python -m validation"))
