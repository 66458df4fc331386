"""What spark-submit is given: ``agglo spark`` as a program, ``python -m agglo.spark fit …``."""

from agglo.cli.spark import spark

if __name__ == "__main__":
    spark(prog_name="python -m agglo.spark")
