"""``python -m thresholdout``: the command line."""

from thresholdout.cli import main

if __name__ == "__main__":
    main(prog_name="python -m thresholdout")
