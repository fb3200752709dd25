#!/usr/bin/env python3
"""Times `concertina study table` of a made-up study: study_table.py [TRIALS [CONCERTINA]] (default: 2000 trials). Prints one JSON object."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "python"))
from conftest import write_trial  # noqa: E402


def main(trials="2000", concertina=str(HERE.parents[2] / "build/experiments/concertina")):
    rates, draw = [1e-4, 3e-4, 1e-3, 3e-3], random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        study = pathlib.Path(folder, "made-up")
        study.mkdir()
        seeds = int(trials) // len(rates)
        text = f"seeds = {list(range(1, seeds + 1))}\n[set]\nrun.steps = 36\n[grid]\noptimizer.lr = {rates}\n"
        (study / "study.toml").write_text(text, encoding="utf-8")
        for number in range(len(rates) * seeds):
            rate, seed = rates[number % len(rates)], number // len(rates) + 1
            write_trial(study, number + 1, {"optimizer.lr": str(rate), "run.seed": str(seed)}, {"loss": round(draw.gauss(2, 0.1), 4), "steps": 2})
        begin = time.perf_counter()
        done = subprocess.run([concertina, "study", "table", study, "--metric", "loss", "--json"], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begin
    if done.returncode:
        sys.exit(done.stderr)
    groups = json.loads(done.stdout)["groups"]
    print(json.dumps({"trials": len(rates) * seeds, "groups": len(groups), "seconds": seconds}))


main(*sys.argv[1:])
