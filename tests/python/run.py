#!/usr/bin/env python3
"""Runs the tests of this folder with a Python that has their libraries: run.py CONCERTINA. Exits with 77 (skipped) without one."""
import os
import pathlib
import shutil
import subprocess
import sys

NEEDED = "import matplotlib, numpy, pandas, pytest, scipy"


def main():
    here = pathlib.Path(__file__).resolve().parent
    environment = os.environ | {"CONCERTINA": str(pathlib.Path(sys.argv[1]).resolve()), "PYTHONPATH": str(here.parents[1] / "experiments" / "python"),
                                "PYTHONDONTWRITEBYTECODE": "1"}
    for python in dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), "/usr/bin/python3"))):
        if subprocess.run([python, "-c", NEEDED], capture_output=True, check=False).returncode == 0:
            return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", here], env=environment, check=False).returncode
    print(f"skipped: no python3 with {NEEDED.removeprefix('import ')}")
    return 77


if __name__ == "__main__":
    sys.exit(main())
