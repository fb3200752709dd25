#!/usr/bin/env python3
"""The Python package as pip installs it, on a real run: what it reads, what it refuses, logs of others, what leaves.

usage: python_package_test.py SOURCE BUILD CONCERTINA. Exit code 77 (skipped) where PyPI gives no packages.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, CONCERTINA = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
VENV = BUILD / "python_package"

LOGS = {
    "nanogpt.txt": "step 0: train loss 4.2874, val loss 4.2823\niter 0: loss 4.2664, time 20342.10ms, mfu -100.00%\n"
                   "iter 10: loss 3.2063, time 98.20ms, mfu 2.01%\n",
    "llmc.txt": "step    1/19560 | loss 11.010653 (+nanz)| norm 15.3445 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU | 171542 tok/s\n",
    "main.log": "s:0 tel:11.0\ns:1 trl:10.9\n",
    "titan.txt": "\x1b[31mstep:  1  \x1b[32mloss:  8.2117  \x1b[38;5;208mgrad_norm:  1.5  \x1b[34mmemory: 10.3GiB(11%)  \x1b[36mtps: 8,123  mfu: 30%\x1b[39m\n",
    "log.csv": "iteration,train/loss,learning_rate,timestamp\n1,3.5,0.1,2026-01-01T00:00:00Z\n2,nan,0.1,2026-01-01T00:00:02Z\n",
    "log.jsonl": '{"step":1,"loss_metrics/global_avg_loss":4.5,"lr":1e-3,"_timestamp":1767225600.5}\n'
                 '{"step":2,"loss_metrics":{"global_avg_loss":4.25}}\n{"step":2,"val":{"loss":4.4}}\n{"st',
}


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"FAILED with {done.returncode}: {words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def installed():
    """The Python of an environment with the package, or None where PyPI is not to be had."""
    python = VENV / "bin" / "python"
    if not python.exists():
        call(sys.executable, "-m", "venv", VENV)
    with tempfile.TemporaryDirectory() as folder:  # building leaves files
        shutil.copytree(SOURCE / "experiments" / "python", f"{folder}/python")
        got = subprocess.run([python, "-m", "pip", "-q", "install", f"{folder}/python[analysis,tensorboard]", "mypy", "pandas-stubs"],
                             capture_output=True, text=True)
    if got.returncode != 0:
        print(f"SKIP: pip: {got.stderr[-500:]}")
        return None
    return python


def check_run(concertina, np):
    run = concertina.Run("runs/one")
    lines = [json.loads(line) for line in open("runs/one/metrics.jsonl", encoding="utf-8")]
    assert list(run.metrics["loss"]) == [line["loss"] for line in lines] and list(run.metrics.index) == list(range(1, 13))
    assert run.metrics["tokens"].iloc[-1] == 12 * 8 * 32, run.metrics["tokens"]
    assert run.config["model.width"] == 32 and run.result["steps"] == 12
    assert list(run.validations.index) == [4, 8, 12] and abs(run.validations["loss"].iloc[-1] - run.result["validation_loss"]) < 1e-15
    compared = json.loads(call(CONCERTINA, "compare", "runs/one", "runs/two", "--metric", "train_s", "--json"))
    seconds = next(group for group in compared["table"]["groups"] if group["values"]["run"] == "one")["metrics"]["train_s"]["mean"]
    assert abs(run.metrics["seconds"].iloc[-1] - seconds) < 1e-6, (run.metrics["seconds"].iloc[-1], seconds)
    assert set(run.trace()["kind"]) >= {"F", "B"} and len(run.launches) == 1 and len(run.restarts) == 0
    assert list(run.checkpoints) == [4, 8, 12]
    differ = concertina.differing_keys(["runs/one", "runs/two"])
    assert list(differ.index) == ["run.seed"] and list(differ.columns) == ["one", "two"], differ
    for by in ("step", "tokens", "seconds"):
        assert list(concertina.curves(["runs/one", "runs/two"], by=by).columns) == ["one", "two"]
    os.makedirs("nothing")
    refuses(concertina.NotARun, "no run directory", lambda: concertina.Run("nothing"))
    refuses(FileNotFoundError, "there: 4, 8, 12", lambda: run.checkpoint(5))


def refuses(kind, text, body):
    try:
        body()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")


def check_checkpoint(concertina, np):
    checkpoint = concertina.Run("runs/one").checkpoint()
    name = next(name for name, shape in checkpoint.tensors.items() if len(shape) == 2)
    assert checkpoint.step == 12 and checkpoint.read(name).shape == checkpoint.tensors[name]
    assert set(checkpoint.parts(name)) == {"weight", "m", "v"} and (checkpoint.read(name, "v") >= 0).all()
    assert not np.array_equal(checkpoint.read(name), concertina.Run("runs/one").checkpoint(4).read(name))
    refuses(KeyError, "near:", lambda: checkpoint.read(name[:-1]))
    refuses(KeyError, "weight, m, v", lambda: checkpoint.read(name, "w"))
    shard = next(checkpoint.path.glob("shard-*.h5"))
    with open(shard, "r+b") as file:
        file.seek(checkpoint._pieces[name][0].parts["weight"][0] + 1)  # a byte within the weight
        file.write(b"\x99")
    refuses(concertina.DamagedCheckpoint, f"{name}/weight is not what was written", lambda: checkpoint.read(name))
    checkpoint.read(name, "m")
    with open(checkpoint.path / "manifest.json", "a", encoding="utf-8") as file:
        file.write(" ")
    refuses(concertina.DamagedCheckpoint, "manifest.sha256", lambda: concertina.Checkpoint(checkpoint.path))


def check_large(concertina, np):
    """One tensor of a checkpoint of 10 GB (a file with holes) is read without the rest."""
    import hashlib
    folder = pathlib.Path("large/step-00000001")
    folder.mkdir(parents=True)
    values = np.arange(256, dtype="<f4")
    size, at = 10_000_000_000, 9_000_000_000
    with open(folder / "shard-00000.h5", "wb") as file:
        file.truncate(size)
        file.seek(at)
        file.write(values.tobytes())
    part = lambda where, digest: [{"name": "weight", "at": where, "sha256": digest}]
    pieces = [{"tensor": "small", "shape": [16, 16], "offset": 0, "count": 256, "parts": part(at, hashlib.sha256(values.tobytes()).hexdigest())},
              {"tensor": "huge", "shape": [2 ** 31], "offset": 0, "count": 2 ** 31, "parts": part(64, "0" * 64)}]
    text = json.dumps({"format": "concertina-checkpoint", "version": 1, "dtype": "float32", "step": 1, "metadata": {}, "view": {},
                       "shards": [{"file": "shard-00000.h5", "bytes": size, "skeleton_sha256": "", "pieces": pieces}]})
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    (folder / "manifest.sha256").write_text(f"{hashlib.sha256(text.encode()).hexdigest()}  manifest.json\n", encoding="ascii")
    read = lambda: int(next(line for line in open("/proc/self/io", encoding="ascii") if line.startswith("rchar")).split()[1])
    before = read()
    assert np.array_equal(concertina.Checkpoint(folder).read("small").ravel(), values)
    assert read() - before < 1 << 20, f"{read() - before} bytes were read"


def check_imports(concertina):
    wanted = {"nanogpt.txt": (10, 3.2063, 4.2823), "llmc.txt": (1, 11.010653, None), "main.log": (1, 10.9, 11.0),
              "titan.txt": (1, 8.2117, None), "log.csv": (1, 3.5, None), "log.jsonl": (2, 4.25, 4.4)}
    for name, text in LOGS.items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
        run = concertina.Run(concertina.import_run(name, f"imported/{name}"))
        step, loss, held_out = wanted[name]
        assert run.metrics["loss"].loc[step] == loss, (name, run.metrics)
        assert (run.validations["loss"].iloc[0] if len(run.validations) else None) == held_out, (name, run.validations)
    theirs = concertina.Run(concertina.import_run("runs/one/tensorboard", "imported/board"))
    ours = concertina.Run("runs/one")
    assert abs(theirs.metrics["loss"] - ours.metrics["loss"]).max() < 1e-5 and list(theirs.validations.index) == [4, 8, 12]
    said = call(CONCERTINA, "compare", "imported/nanogpt.txt", "imported/llmc.txt", "runs/one")
    assert "nanogpt.txt" in said and "llmc.txt" in said, said
    refuses(FileExistsError, "there already", lambda: concertina.import_run("main.log", "imported/main.log"))
    pathlib.Path("poem.txt").write_text("no losses here\n", encoding="utf-8")
    refuses(ValueError, "no losses by step", lambda: concertina.import_run("poem.txt", "imported/poem"))
    folder = concertina.to_tensorboard(["runs/one"], "board")
    assert len(list(folder.rglob("events.out.tfevents.*"))) >= 2


def check_notebook(concertina):
    """From the idea to a compared run in 25 lines of code at most."""
    os.environ["CONCERTINA"] = str(CONCERTINA)
    cells = json.loads((SOURCE / "experiments/python/schedule.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert sum(1 for text in code for line in text.splitlines() if line.strip()) <= 25
    names = {}
    for text in code:
        exec(compile(text, "schedule.ipynb", "exec"), names)
    own, usual = names["own"], names["usual"]
    assert own.simulate(latency=0.5)["bubble"]["mean"] < usual.simulate(latency=0.5)["bubble"]["mean"]
    assert own.draw().startswith("<svg") and list(own.timeline().columns) == ["rank", "action", "start", "end"]
    assert [len(run.metrics) for run in names["runs"]] == [20, 20]
    wrong = concertina.Schedule("wrong", [["0F0", "0F1", "0B1", "0B0"], ["1B0", "1F0", "1F1", "1B1"]])
    refuses(concertina.ProgramError, "1B0 comes before", wrong.check)
    refuses(concertina.ProgramError, "run.stepps", lambda: concertina.train("x", run__stepps=3, data__text="text.txt"))


def checks():
    import concertina
    import numpy as np
    assert str(VENV) in concertina.__file__, concertina.__file__
    check_run(concertina, np)
    check_checkpoint(concertina, np)
    check_large(concertina, np)
    check_imports(concertina)
    check_notebook(concertina)
    print("5 passed, 0 failed")


def main():
    python = installed()
    if python is None:
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text.txt").write_text(" ".join(str(i * i % 977) for i in range(4000)), encoding="utf-8")
        for name, seed in (("one", 1), ("two", 7)):
            call(CONCERTINA, "train", "data.text=text.txt", "model.layers=2", "model.width=32", "model.heads=2", "model.context=32",
                 "batch.global=8", "batch.microbatches=4", "run.steps=12", "run.threads=1", "checkpoint.every=4", "checkpoint.keep=9",
                 "eval.every=4", "eval.batches=1", f"run.seed={seed}", f"run.name={name}")
        print(call(python, __file__, SOURCE, BUILD, CONCERTINA, "checks"), end="")
    call(python, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", VENV / "mypy", SOURCE / "experiments" / "python" / "concertina", cwd=VENV)
    return 0


if __name__ == "__main__":
    sys.exit(checks() if sys.argv[4:] else main())
