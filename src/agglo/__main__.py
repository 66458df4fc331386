"""Run the command line: ``python -m agglo`` is ``agglo``."""

from agglo.cli import main

if __name__ == "__main__":
    main()
