"""`python -m gossamer` is the `gossamer` command."""

from gossamer.cli.main import main

if __name__ == "__main__":
    main()
