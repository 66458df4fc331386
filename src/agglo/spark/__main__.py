"""The command ``agglo spark`` as a program for spark-submit: ``python -m agglo.spark fit …``."""

from agglo.cli.spark import spark

if __name__ == "__main__":
    spark(prog_name="python -m agglo.spark")
