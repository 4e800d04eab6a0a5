"""`python -m ragtrace`: the same as the command `ragtrace`."""

from ragtrace.cli.main import app

if __name__ == "__main__":
    app(prog_name="ragtrace")
