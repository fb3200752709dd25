#!/usr/bin/env python3
"""Runs `concertina bench step` and torch_step.py by turns and prints the table: bench_peers.sh
calls it with the Python that has torch.

A round is one run of ours and one of each way that PyTorch has for the configuration; its ratio is
to the fastest of them. The table has medians over rounds.
"""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_step.py")
MPIRUN = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1".split()


@dataclasses.dataclass
class Configuration:
    name: str
    ranks: int
    threads: int
    sets: list  # of ours
    peers: dict  # name -> arguments of torch_step.py
    required: dict  # figure -> least value


ONE_RANK = {"eager": [], "eager, 8 microbatches": ["--micro", "8"], "compile": ["--compile"],
            "compile, 8 microbatches": ["--compile", "--micro", "8"]}
ONE_RANK_REQUIRED = {"ratio": 1.2, "gemm_limit": 0.80}
CONFIGURATIONS = [
    Configuration("1 rank, 1 thread", 1, 1, [], ONE_RANK, ONE_RANK_REQUIRED),
    Configuration("1 rank, 2 threads", 1, 2, [], ONE_RANK, ONE_RANK_REQUIRED),
    Configuration("pp=2", 2, 1,
                  ["parallel.pp=2", "batch.microbatches=8", "numerics.leaves=1"],
                  {s: ["--pp", s, "--micro", "8"] for s in ("gpipe", "1f1b")},
                  {"ratio": 1.6, "schedule_efficiency": 0.88}),
    Configuration("dp=2", 2, 1, ["parallel.dp=2", "numerics.leaves=2"],
                  {"DDP": ["--dp"], "DDP, compile": ["--dp", "--compile"]},
                  {"ratio": 1.4, "scaling": 0.94}),
]
OURS = ("gemm_limit", "schedule_efficiency", "scaling")


def required_of(configuration, compute, backend):
    """Of bf16 only a ratio is asked for, on one rank, where the processor has AMX."""
    if compute == "fp32":
        return configuration.required
    return {"ratio": 2.0} if configuration.ranks == 1 and "by AMX" in backend else {}


def last_json(command, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr[-3000:]}")
    return json.loads(lines[-1])


def ours(configuration, options):
    command = [options.binary, "bench", "step", "--json", "--steps", str(options.steps)]
    for key in [f"run.threads={configuration.threads}",
                f"numerics.compute={options.compute}", *configuration.sets]:
        command += ["--set", key]
    if configuration.ranks > 1:
        command = [*MPIRUN, "-n", str(configuration.ranks), *command]
    return last_json(command, configuration.threads)


def peer(configuration, arguments, options):
    command = [sys.executable]
    if configuration.ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                    str(configuration.ranks)]
    command += [PEER, "--threads", str(configuration.threads), "--steps", str(options.steps),
                "--dtype", options.compute]
    return last_json(command + arguments, configuration.threads)["tokens_per_s"]


def measure(configuration, options):
    mine, theirs = [], {name: [] for name in configuration.peers}
    for round_ in range(options.rounds):
        print(f"{configuration.name}: round {round_ + 1} of {options.rounds}", file=sys.stderr)
        mine.append(ours(configuration, options))
        print(f"  ours {mine[-1]['tokens_per_s']:.0f} tokens/s", file=sys.stderr)
        for name, arguments in configuration.peers.items():
            theirs[name].append(peer(configuration, arguments, options))
            print(f"  PyTorch {name} {theirs[name][-1]:.0f} tokens/s", file=sys.stderr)
    best = [max(rates) for rates in zip(*theirs.values())]  # of each round
    row = {"configuration": configuration.name,
           "tokens_per_s": statistics.median(m["tokens_per_s"] for m in mine),
           "torch_tokens_per_s": statistics.median(best),
           "torch": max(theirs, key=lambda name: statistics.median(theirs[name])),
           "ratio": statistics.median(m["tokens_per_s"] / t for m, t in zip(mine, best))}
    for figure in OURS:
        if figure in mine[0]:
            row[figure] = statistics.median(m[figure] for m in mine)
    row["backend"] = mine[0]["backend"]
    row["required"] = required_of(configuration, options.compute, row["backend"])
    row["met"] = all(row[figure] >= least for figure, least in row["required"].items())
    return row


def table(rows):
    print("| configuration | ours, tokens/s | PyTorch, tokens/s | ratio | gemm_limit | "
          "schedule_efficiency | scaling | PyTorch's fastest |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        cells = [row["configuration"], f"{row['tokens_per_s']:,.0f}",
                 f"{row['torch_tokens_per_s']:,.0f}"]
        for figure in ("ratio", *OURS):
            cell = f"{row[figure]:.2f}" if figure in row else ""
            if figure in row["required"]:
                least = row["required"][figure]
                cell += f" (>= {least:.2f}{'' if row[figure] >= least else ', missed'})"
            cells.append(cell)
        print("| " + " | ".join([*cells, row["torch"]]) + " |")


def main():
    parser = argparse.ArgumentParser(prog="bench_peers.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="measured steps of each run")
    parser.add_argument("--only", default="", help="configurations whose name has this text")
    parser.add_argument("--compute", default="fp32", choices=["fp32", "bf16"],
                        help="ours: numerics.compute; PyTorch: autocast")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    options = parser.parse_args()
    chosen = [c for c in CONFIGURATIONS if options.only in c.name]
    if not chosen or options.rounds < 1 or options.steps < 1:
        parser.error("--rounds and --steps from 1; --only one of: "
                     + ", ".join(c.name for c in CONFIGURATIONS))
    rows = [measure(c, options) for c in chosen]
    if options.json:
        print(json.dumps({"rounds": options.rounds, "steps": options.steps,
                          "compute": options.compute, "rows": rows}))
    else:
        table(rows)


main()
