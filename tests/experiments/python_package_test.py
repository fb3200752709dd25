#!/usr/bin/env python3
"""The Python package as pip installs it, on a real run: what it reads, what it refuses, logs of others, what leaves.

usage: python_package_test.py SOURCE BUILD CONCERTINA. Exit code 77 (skipped) where PyPI gives no packages.
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

SOURCE, BUILD, CONCERTINA = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
VENV = BUILD / "python_package"

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
        got = subprocess.run([python, "-m", "pip", "-q", "install", f"{folder}/python[analysis,tensorboard]", "mypy", "pandas-stubs", "pytest"],
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
    assert concertina.compare("runs/one", "runs/two").json()["bits"] == compared["bits"] and not compared["bits"]["two"]["same"]
    seconds = next(group for group in compared["table"]["groups"] if group["values"]["run"] == "one")["metrics"]["train_s"]["mean"]
    assert abs(run.metrics["seconds"].iloc[-1] - seconds) < 1e-6, (run.metrics["seconds"].iloc[-1], seconds)
    assert set(run.trace()["kind"]) >= {"F", "B"} and len(run.launches) == 1 and len(run.restarts) == 0
    assert list(run.checkpoints) == [4, 8, 12]
    differ = concertina.differing_keys(["runs/one", "runs/two"])
    assert list(differ.index) == ["run.seed"] and list(differ.columns) == ["one", "two"], differ
    for by in ("step", "tokens", "seconds"):
        assert list(concertina.curves(["runs/one", "runs/two"], by=by).columns) == ["one", "two"]
    os.makedirs("nothing")
    refuses(concertina.NotARun, "not a run directory", lambda: concertina.Run("nothing"))
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
    refuses(KeyError, "did you mean", lambda: checkpoint.read(name[:-1]))
    refuses(KeyError, "weight, m, v", lambda: checkpoint.read(name, "w"))
    shard = next(checkpoint.path.glob("shard-*.h5"))
    with open(shard, "r+b") as file:
        file.seek(checkpoint._pieces[name][0].parts["weight"][0] + 1)  # a byte within the weight
        file.write(b"\x99")
    refuses(concertina.DamagedCheckpoint, f"SHA-256 mismatch in {name}/weight", lambda: checkpoint.read(name))
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
    import import_checks, import_curve_checks
    for check in (import_checks.check_printed, import_checks.check_meanings, import_checks.check_tables, import_checks.check_boards,
                  import_curve_checks.check_cuts, import_curve_checks.check_runs, import_curve_checks.check_launches,
                  import_curve_checks.check_held_out, import_curve_checks.check_lightning):
        check(concertina)
    theirs = concertina.Run(concertina.import_run("runs/one/tensorboard", "imported/board"))
    ours = concertina.Run("runs/one")
    assert abs(theirs.metrics["loss"] - ours.metrics["loss"]).max() < 1e-5 and list(theirs.validations.index) == [4, 8, 12]
    pathlib.Path("nano.txt").write_text("iter 0: loss 4.2664, time 98.20ms, mfu -100.00%\n", encoding="utf-8")
    said = subprocess.run([sys.executable, "-m", "concertina", "import", "nano.txt", "imported/nano"], capture_output=True, text=True, check=True)
    assert said.stdout == "imported/nano\n" and "1 training losses of steps 1 to 1" in said.stderr, said
    assert "nano" in call(CONCERTINA, "compare", "imported/nano", "runs/one")
    refuses(FileExistsError, "already exists", lambda: concertina.import_run("nano.txt", "imported/nano"))
    for text in ("no losses here\n", ""):
        pathlib.Path("poem.txt").write_text(text, encoding="utf-8")
        refuses(ValueError, "no losses by step", lambda: concertina.import_run("poem.txt", "imported/poem"))
    os.mkfifo("fifo")
    refuses(OSError, "regular file", lambda: concertina.import_run("fifo", "imported/fifo"))
    folder = concertina.to_tensorboard(["runs/one"], "board")
    assert len(list(folder.rglob("events.out.tfevents.*"))) >= 2
    for program in ("wandb", "mlflow"):
        if importlib.util.find_spec(program) is None:
            said = subprocess.run([sys.executable, "-m", "concertina", "export", program, "runs/one"], capture_output=True, text=True, check=False)
            assert said.returncode == 2 and f"pip install {program}" in said.stderr and "Traceback" not in said.stderr, said


def check_documents(concertina):
    """The Python blocks of the package's README run, and tensors that documents name are there."""
    import pandas
    sys.modules["no_plots"] = types.ModuleType("no_plots")
    sys.modules["no_plots"].plot = lambda data, kind, **options: None
    pandas.set_option("plotting.backend", "no_plots")
    shutil.copytree("runs/one", "documents/runs/first")
    shutil.copytree("runs/two", "documents/runs/again")
    os.makedirs("documents/studies/schedules")
    pathlib.Path("documents/studies/schedules/study.toml").write_text('[set]\nrun.steps = 2\n[grid]\nparallel.schedule = ["1f1b"]\n', encoding="utf-8")
    readme = (SOURCE / "experiments/python/README.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "concertina.table" not in block]
    names = {}
    before = os.getcwd()
    os.chdir("documents")
    exec(compile(blocks[0], "README.md", "exec"), names)
    exec(compile(blocks[1], "README.md", "exec"), names)
    exec(compile(blocks[2], "README.md", "exec"), names)
    assert len(blocks) == 3 and len(names["run"].metrics) == 12
    os.chdir(before)
    texts = readme + concertina.__doc__ + (SOURCE / "experiments/guide/freezing.md").read_text(encoding="utf-8").split("## Tied embeddings")[0]
    tensors = set(re.findall(r"\b\d{3}\.[a-z]+/[a-z.]*[a-z]", texts))
    assert tensors and tensors <= set(names["checkpoint"].tensors), tensors
    documents = [*SOURCE.glob("*.md"), *SOURCE.glob("experiments/**/*.md"), *SOURCE.glob("experiments/python/concertina/*.py")]
    assert not [path for path in documents if re.search(r"pip install '?concertina\b(?!-)", path.read_text(encoding="utf-8"))]


def check_notebook(concertina):
    """From the idea to a compared run in 25 lines of code at most."""
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
    refuses(concertina.ProgramError, "1B0 precedes", wrong.check)
    try:
        wrong.check()
    except concertina.ProgramError as error:
        assert not str(error).startswith("concertina: ") and "\n  try: " in str(error) and "{" not in str(error), error
    refuses(concertina.ProgramError, "run.stepps", lambda: concertina.train("x", run__stepps=3, data__text="text.txt"))


def checks():
    import concertina
    import numpy as np
    assert str(VENV) in concertina.__file__, concertina.__file__
    check_run(concertina, np)
    check_documents(concertina)
    check_checkpoint(concertina, np)
    check_large(concertina, np)
    check_imports(concertina)
    check_notebook(concertina)
    print("6 passed, 0 failed")


def main():
    python = installed()
    if python is None:
        return 77
    os.environ["PATH"] = f"{VENV / 'bin'}:{os.environ['PATH']}"  # the program runs subcommands with the python3 on it
    os.environ["CONCERTINA"] = str(CONCERTINA)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text.txt").write_text(" ".join(str(i * i % 977) for i in range(4000)), encoding="utf-8")
        for name, seed in (("one", 1), ("two", 7)):
            call(CONCERTINA, "train", "data.text=text.txt", "model.layers=2", "model.width=32", "model.heads=2", "model.context=32",
                 "batch.global=8", "batch.microbatches=4", "run.steps=12", "run.threads=1", "checkpoint.every=4", "checkpoint.keep=9",
                 "eval.every=4", "eval.batches=1", f"run.seed={seed}", f"run.name={name}")
        print(call(python, __file__, SOURCE, BUILD, CONCERTINA, "checks"), end="")
    print(call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", SOURCE / "tests" / "python", cwd=VENV), end="")
    call(python, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", VENV / "mypy", SOURCE / "experiments" / "python" / "concertina", cwd=VENV)
    return 0


if __name__ == "__main__":
    sys.exit(checks() if sys.argv[4:] else main())
