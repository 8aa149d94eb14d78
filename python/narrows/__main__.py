"""`python -m narrows`: the program where its script is not on the path."""

from narrows.cli import main

if __name__ == "__main__":
    main()
