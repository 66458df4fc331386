"""Run the command line interface by ``python -m agglo``."""

from agglo.cli import main

if __name__ == "__main__":
    main()
