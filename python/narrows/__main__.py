"""`python -m narrows`: runs the program where its script is not on the PATH."""

from narrows.cli import main

if __name__ == "__main__":
    main()
