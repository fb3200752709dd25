#!/usr/bin/env python3
"""Alternately runs `concertina bench step` and torch_step.py, and prints the table: bench_peers.sh
calls it with the Python that has torch. A way of running PyTorch that fails in any round is named
and omitted.

--isa avx2 measures, on a processor with AVX-512, the speed without it: both sides are limited
to AVX2. Ours: ONEDNN_MAX_CPU_ISA, which our own loops follow. PyTorch: the same for its oneDNN,
MKL_ENABLE_INSTRUCTIONS for MKL's products in fp32 (which MKL obeys on Intel's processors; on others it
chooses by itself), ATEN_CPU_CAPABILITY for its kernels and what torch.compile generates.

A round is one run of ours and one run per way of PyTorch for the configuration; its ratio is
to the fastest of them. The table shows medians over rounds. With --json there is also the peak resident memory of each side's largest
process, in bytes: peak_rss, and torch_peak_rss of the fastest way.
"""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_step.py")
MPIRUN = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1".split()


@dataclasses.dataclass
class Configuration:
    name: str
    ranks: int
    threads: int
    sets: list  # of ours
    peers: dict  # name -> arguments of torch_step.py
    required: dict  # metric -> smallest value
    model: dict = dataclasses.field(default_factory=dict)  # differences from the bench model
    family: str = "gpt"
    batch: int = 16

    def parameters(self):
        """Parameters that multiply a token in products, with the tied head counted once."""
        m = self.model
        return 12 * m["layers"] * m["width"] ** 2 + m["vocab"] * m["width"]

    def flops_per_token(self):
        """The model FLOPs of experiments/record/launch_metrics.h, per token."""
        m = self.model
        return 6 * self.parameters() + 12 * m["layers"] * m["width"] * m["context"]


ONE_RANK = {"eager": [], "eager, 8 microbatches": ["--micro", "8"], "compile": ["--compile"],
            "compile, 8 microbatches": ["--compile", "--micro", "8"]}
ONE_RANK_REQUIRED = {"ratio": 1.2, "gemm_limit": 0.80}
CONFIGURATIONS = [
    Configuration("gpt, 1 thread", 1, 1, [], ONE_RANK, ONE_RANK_REQUIRED),
    Configuration("gpt, 2 threads", 1, 2, [], ONE_RANK, ONE_RANK_REQUIRED),
    Configuration("gpt, pp=2", 2, 1,
                  ["parallel.pp=2", "batch.microbatches=8", "numerics.leaves=1"],
                  {s: ["--pp", s, "--micro", "8"] for s in ("gpipe", "1f1b")},
                  {"ratio": 1.6, "schedule_efficiency": 0.88}),
    Configuration("gpt, dp=2", 2, 1, ["parallel.dp=2", "numerics.leaves=2"],
                  {"DDP": ["--dp"], "DDP, compile": ["--dp", "--compile"]},
                  {"ratio": 1.4, "scaling": 0.94}),
]
# The other families at the bench model's sizes; ViT reads images of 64 x 64 pixels as 257 rows.
FAMILIES = {"llama": ["model.llama.kv_heads=2"], "bert": [],
            "vit": ["model.vit.image=64", "model.vit.channels=3", "model.vit.patch=4",
                    "model.classes=10"]}
CONFIGURATIONS += [Configuration(f"{family}, {threads} thread{'s' * (threads > 1)}", 1, threads,
                                 sets, ONE_RANK, {"ratio": 1.2}, family=family)
                   for family, sets in FAMILIES.items() for threads in (1, 2)]
GPU_CONFIGURATIONS = [
    Configuration("GPT-2 124M", 1, 1, [], {"compile": ["--compile"]},
                  {"ratio": 1.15, "mfu": 0.55, "memory": 1.0},
                  dict(layers=12, width=768, heads=12, context=1024, vocab=50304), 32),
    Configuration("GPT-2 1.5B", 1, 1, [], {"compile": ["--compile"]}, {"mfu": 0.65},
                  dict(layers=48, width=1600, heads=25, context=1024, vocab=50304), 8),
]
# mfu: the FLOPs of flops_per_token() divided by those of the GPU's square product in bf16. memory:
# PyTorch's peak divided by ours.
OURS = ("gemm_limit", "tiles_limit", "schedule_efficiency", "scaling", "mfu", "memory")


def required_of(configuration, compute, isa, backend):
    """Values are required in fp32 on a CPU and in bf16 on a GPU; for bf16 on a CPU only a ratio, on
    one rank, if the processor has AMX."""
    if compute == ("bf16" if backend.startswith("cuda") else "fp32"):
        avx2 = isa == "avx2" and configuration.name in AVX2_RATIOS
        return {**configuration.required, **({"ratio": AVX2_RATIOS[configuration.name]} if avx2 else {})}
    return {"ratio": 2.0} if configuration.ranks == 1 and "by AMX" in backend else {}


ISAS = {"native": {}, "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2",
                         "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}}
# Smallest ratios if both are limited to AVX2, where products take a larger part of a step.
AVX2_RATIOS = {"gpt, pp=2": 1.3, "gpt, dp=2": 1.25}


class Failed(Exception):
    pass


def last_json(command, threads, isa):
    env = dict(os.environ, **ISAS[isa], OMP_NUM_THREADS=str(threads), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        lines = [line for line in out if line.startswith("{")]
        if process.returncode != 0 or not lines:
            raise Failed(f"failed ({process.returncode}): {' '.join(command)}\n{err.read()[-3000:]}")
    return {**json.loads(lines[-1]), "peak_rss": 1024 * usage.ru_maxrss}


def model_sets(configuration):
    family = [f"model.family={configuration.family}"]
    if not configuration.model:
        return family
    return [*family, *(f"model.{key}={value}" for key, value in configuration.model.items()),
            f"batch.global={configuration.batch}", "batch.microbatches=1"]


def ours(configuration, options):
    command = [options.binary, "bench", "step", "--json", "--steps", str(options.steps)]
    for key in [f"run.threads={configuration.threads}",
                f"numerics.compute={options.compute}", f"run.device={options.device}",
                *model_sets(configuration), *configuration.sets]:
        command += ["--set", key]
    if configuration.ranks > 1:
        command = [*MPIRUN, "-n", str(configuration.ranks), *command]
    return last_json(command, configuration.threads, options.isa)


def peer(configuration, arguments, options):
    command = [sys.executable]
    if configuration.ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(configuration.ranks)]
    command += [PEER, "--threads", str(configuration.threads), "--steps", str(options.steps),
                "--dtype", options.compute, "--device", options.device,
                "--family", configuration.family]
    if configuration.model:
        for key, value in {**configuration.model, "batch": configuration.batch}.items():
            command += [f"--{key}", str(value)]
    return last_json(command + arguments, configuration.threads, options.isa)


def add_gpu_figures(configuration, mine, theirs):
    """Ratios of one round, PyTorch's to ours."""
    rate = max(peer["product_flops_per_s"] for peer in theirs)
    mine["mfu"] = mine["tokens_per_s"] * configuration.flops_per_token() / rate
    mine["memory"] = min(peer["peak_bytes"] for peer in theirs) / mine["peak_bytes"]


def measure(configuration, options):
    mine, theirs = [], {name: [] for name in configuration.peers}
    for round_ in range(options.rounds):
        print(f"{configuration.name}: round {round_ + 1} of {options.rounds}", file=sys.stderr)
        mine.append(ours(configuration, options))
        print(f"  ours {mine[-1]['tokens_per_s']:.0f} tokens/s", file=sys.stderr)
        for name, arguments in configuration.peers.items():
            if name not in theirs or options.ways and name not in options.ways.split(","):
                theirs.pop(name, None)
                continue
            try:
                theirs[name].append(peer(configuration, arguments, options))
            except Failed as failure:
                print(f"  PyTorch {name} {failure}", file=sys.stderr)
                del theirs[name]
                continue
            print(f"  PyTorch {name} {theirs[name][-1]['tokens_per_s']:.0f} tokens/s", file=sys.stderr)
        if not theirs:
            raise Failed(f"{configuration.name}: PyTorch failed in every way")
        if options.device == "cuda":
            add_gpu_figures(configuration, mine[-1], [runs[-1] for runs in theirs.values()])
    rates = {name: [run["tokens_per_s"] for run in runs] for name, runs in theirs.items()}
    best = [max(round_) for round_ in zip(*rates.values())]  # in each round
    row = {"configuration": configuration.name,
           "tokens_per_s": statistics.median(m["tokens_per_s"] for m in mine),
           "torch_tokens_per_s": statistics.median(best),
           "torch": max(rates, key=lambda name: statistics.median(rates[name])),
           "ratio": statistics.median(m["tokens_per_s"] / t for m, t in zip(mine, best)),
           "peak_rss": statistics.median(m["peak_rss"] for m in mine)}
    row["torch_peak_rss"] = statistics.median(run["peak_rss"] for run in theirs[row["torch"]])
    for figure in OURS:
        if figure in mine[0]:
            row[figure] = statistics.median(m[figure] for m in mine)
    row["backend"] = mine[0]["backend"]
    row["required"] = required_of(configuration, options.compute, options.isa, row["backend"])
    row["met"] = all(row[figure] >= least for figure, least in row["required"].items())
    return row


def table(rows):
    shown = ["ratio", *(figure for figure in OURS if any(figure in row for row in rows))]
    titles = ["configuration", "ours, tokens/s", "PyTorch, tokens/s", *shown, "PyTorch's fastest"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for row in rows:
        cells = [row["configuration"], f"{row['tokens_per_s']:,.0f}", f"{row['torch_tokens_per_s']:,.0f}"]
        for figure in shown:
            cell = f"{row[figure]:.2f}" if figure in row else ""
            if figure in row["required"]:
                least = row["required"][figure]
                cell += f" (>= {least:.2f}{'' if row[figure] >= least else ', missed'})"
            cells.append(cell)
        print("| " + " | ".join([*cells, row["torch"]]) + " |")


def main():
    parser = argparse.ArgumentParser(prog="bench_peers.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="measured steps of each run")
    parser.add_argument("--only", default="", help="configurations whose name has this text")
    parser.add_argument("--ways", default="", metavar="NAME,...", help="ways of running PyTorch, such as eager,compile; others are omitted")
    parser.add_argument("--compute", default="fp32", choices=["fp32", "bf16"], help="ours: numerics.compute; PyTorch: autocast")
    parser.add_argument("--isa", default="native", choices=[*ISAS], help="avx2: limit both sides to AVX2")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: other models, on GPU 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    options = parser.parse_args()
    known = GPU_CONFIGURATIONS if options.device == "cuda" else CONFIGURATIONS
    chosen = [c for c in known if options.only in c.name]
    if not chosen or options.rounds < 1 or options.steps < 1:
        parser.error("--rounds and --steps must be at least 1; --only must match one of: " + ", ".join(c.name for c in known))
    try:
        rows = [measure(c, options) for c in chosen]
    except Failed as failure:
        sys.exit(str(failure))
    if options.json:
        print(json.dumps({"rounds": options.rounds, "steps": options.steps, "compute": options.compute, "isa": options.isa, "rows": rows}))
    else:
        table(rows)


main()
