"""`python -m mugraph`: the command line, for environments whose scripts are not on the path."""

from mugraph.cli import main

if __name__ == "__main__":
    main()
