#!/usr/bin/env python3
"""Repeats the published measurements that this machine can make, and updates the tables of the documents that show them.

A NAME is a result in catalogue.toml, or a result followed by parts of a case's values: step, step/gpt/fp32. Without a NAME, everything
that fits in --minutes is measured. Each measurement becomes an entry in data/NAME.json and is compared with the previous one on the same kind of processor.
Measure on an idle machine, after `ninja -C build`. The exit code is 1 if a measurement failed, 2 for invalid arguments."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from measuring import main  # noqa: E402

sys.exit(main(__doc__))
