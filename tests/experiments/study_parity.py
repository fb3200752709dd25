#!/usr/bin/env python3
"""Holds the tables, power and comparisons of the Python package to those of another implementation: random studies and sets of runs.

usage: study_parity.py SOURCE PROGRAM ORACLE [STUDIES [FIRST]]. PROGRAM reads the studies; ORACLE is a `concertina` whose numbers are
right. Numbers of --json are equal to 1e-12, relative, and so are its texts but for NOTES. Tables in other formats are only written.
"""
import contextlib
import datetime
import hashlib
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE, PROGRAM, ORACLE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
STUDIES, FIRST = (int(word) for word in (sys.argv[4:] + ["200", "0"][len(sys.argv) - 4:])[:2])
sys.path.insert(0, str(SOURCE / "experiments" / "python"))
os.environ["CONCERTINA"] = str(PROGRAM)
os.environ.pop("PYTHONPATH", None)

from concertina import commands  # noqa: E402

NOTES = re.compile(r"\.(notes|comparison|configs)(\[\d+\])?$")  # in words of its own
DEFAULTS = {"table": {"pair": "run.seed", "test": "t", "correction": "holm", "confidence": "0.95", "format": "text"},
            "compare": {"pair": "run.seed", "test": "t", "correction": "holm", "confidence": "0.95"}, "power": {"difference": "0", "power": "0.8"}}
LISTS = ("metric", "by", "baseline", "front")

METRICS = ("loss", "validation_loss", "validation_accuracy", "tokens_per_s", "median_step_ms", "bubble", "peak_bytes", "grad_norm",
           "train_s", "validation_bits_per_byte", "validation_tokens", "recorded.größe", "parameters")


class Counts:
    numbers = texts = refusals = worst = 0
    failed = []


def close(path, theirs, ours, scale=1e-20):
    """The first difference of two JSON values; None if there is none. `scale`: below which a difference does not count."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if list(theirs) != list(ours):
            return f"{path}: keys {list(theirs)} against {list(ours)}"
        return next((wrong for key in theirs if (wrong := close(f"{path}.{key}", theirs[key], ours[key], scale_of(theirs, key)))), None)
    if NOTES.search(path):
        return None
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return next((wrong for at, pair in enumerate(zip(theirs, ours)) if (wrong := close(f"{path}[{at}]", *pair))), None)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (theirs, ours)):
        Counts.numbers += 1
        off = abs(theirs - ours) / max(abs(theirs), abs(ours), scale)
        Counts.worst = max(Counts.worst, off if off <= 1e-12 else 0)
        return None if off <= 1e-12 else f"{path}: {theirs!r} against {ours!r}"
    return None if theirs == ours else f"{path}: {theirs!r} against {ours!r}"


def scale_of(values, key):
    """An end of an interval is as large as the other: near zero, it is a difference of larger numbers."""
    ends = [values.get(re.sub("(low|high)$", end, key)) for end in ("low", "high")] if re.search("ci_(low|high)$", key) else []
    if key == "power" or (re.search("(^|_)p(_single)?$", key) and isinstance(values[key], float) and values[key] > 1 - 1e-9):
        return 1e3 if key != "power" else 1e-9  # both are integrals, or the other is rounded to 1
    return max([1e-20, *(abs(end) for end in ends if isinstance(end, float))])  # a probability below that is 0 to anyone


def parsed(words):
    """The subcommand and its options, as the program gives them to the package."""
    words = [str(word) for word in words]
    name = words[1] if words[0] == "study" else words[0]
    words, places, options = words[1 + (words[0] == "study"):], [], dict(DEFAULTS[name])
    many = []
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            places.append(word)
        elif word in ("--json", "--mixed", "--stopped", "--no-notes"):
            options[word[2:]] = "true"
        elif word[2:] in LISTS:
            many += [f"{word}={value}" for value in words.pop(0).split(",")]
        elif word in ("--where", "--to"):
            many.append(f"{word}={words.pop(0)}")
        else:
            options[word[2:]] = words.pop(0)
    return ("study-" * (name != "compare") + name,
            [f"--study={place}" for place in places] + many + [f"--{key}={value}" for key, value in options.items()])


def python(words):
    """Exit code, stdout and stderr of the package."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = commands.run(*parsed(words))
    return code, out.getvalue(), err.getvalue()


def check(words, without=()):
    """Counts a failure where both say different things."""
    done = subprocess.run([ORACLE, *words], capture_output=True, check=False)
    theirs = done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    ours = python(words)
    if theirs[0] != ours[0]:
        Counts.failed.append(f"{words}: exit code {theirs[0]} against {ours[0]}\n{theirs[2]}{ours[2]}")
    elif theirs[0] != 0:
        Counts.refusals += 1
        if os.environ.get("REFUSALS"):
            print(theirs[2].splitlines()[0], "|||", ours[2].splitlines()[0])
    elif "--json" in words:
        said = [json.loads(text) for text in (theirs[1], ours[1])]
        if wrong := close("", *({key: value for key, value in one.items() if key not in without} for one in said)):
            Counts.failed.append(f"{words}: {wrong}")
    else:
        Counts.texts += 1


def dumped(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_trial(folder, record):
    """As the program writes it: with a digest of all else in it."""
    record["digest"] = hashlib.sha256(dumped(record).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trial.json").write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def number(dice, scale):
    """Ties, missing precision, and sizes of all kinds."""
    kind = dice.random()
    if kind < 0.25:
        return float(dice.choice([0, 1, 2, -1])) * scale
    value = scale * (1 + dice.choice([1e-9, 1e-3, 0.1, 3]) * dice.gauss(0, 1))
    return float(f"{value:.12g}")


class Study:
    """A random study on disk."""

    def __init__(self, dice, name):
        self.dice, self.folder = dice, pathlib.Path(name)
        self.axes = {}
        for key, values in (("parallel.schedule", ["1f1b", "gpipe", "zb-v"]), ("optimizer.lr", [1e-3, 1e-5, 3e-4]), ("model.width", [32, 64]),
                            ("parallel.pp", [1, 2]), ("data.tokenizer", ["bytes", "./tok"]), ("batch.global", [4, 8])):
            if dice.random() < 0.3:
                self.axes[key] = dice.sample(values, dice.randint(1, len(values)))
        self.seeds = dice.choice([[], [1], [1, 2], [1, 2, 3], list(range(1, 9))])
        self.arms = dice.random() < 0.25
        self.random = dice.random() < 0.15
        self.zip = dice.random() < 0.15
        self.base = dice.choice(["", "", "[eval]\nevery = 6\n# größe\n"])
        self.asha = dice.random() < 0.2
        self.set = {"run.steps": "36", "data.text": "text.txt"}
        self.metrics = [metric for metric in METRICS if dice.random() < 0.6] or ["loss"]
        if self.asha and "validation_loss" not in self.metrics:
            self.metrics.append("validation_loss")
        self.claim = dice.random() < 0.3 and len(self.axes) > 0
        self.scales = {metric: dice.choice([1e-3, 1, 2.5, 1e5, 1e9]) for metric in self.metrics}
        self.write_file()
        self.write_trials()

    def write_file(self):
        lines = [f"seeds = {self.seeds}"] if self.seeds else []
        draws = self.dice.randint(1, 4) if self.random else 0
        self.folder.mkdir(parents=True)
        if self.base:
            (self.folder / "base").mkdir()
            (self.folder / "base" / "1-b.toml").write_text(self.base, encoding="utf-8")
            lines.append('base = "some/b.toml"')
        lines += ["[set]"] + [f'{key} = "{value}"' if not value.isdigit() else f"{key} = {value}" for key, value in self.set.items()]
        if self.claim:
            column = next(iter(self.axes))
            lines += ["[equivalence]", f'metric = "{self.dice.choice(self.metrics)}"', f"margin = {self.dice.choice([0.01, 1, 1000.0])}",
                      f'baseline = "{column}={self.axes[column][0]}"']
        if self.asha:
            lines += ["[search]", 'method = "asha"', 'metric = "validation_loss"', "min_steps = 4"]
            lines += ['goal = "max"'] if self.dice.random() < 0.3 else []
        if self.axes:
            lines += ["[grid]"] + [f"{key} = {json.dumps(values)}" for key, values in self.axes.items()]
        if self.random:
            lines += ["[random]", f"trials = {draws}", f"seed = {self.dice.randint(0, 99)}",
                      "model.dropout = {uniform = [0.0, 0.5]}", "optimizer.weight_decay = {log_uniform = [1e-4, 1.0]}",
                      "model.layers = {uniform = [1, 9]}", 'numerics.compute = {choice = ["fp32", "bf16"]}']
        if self.zip:
            lines += ["[[zip]]", "log.every = [1, 2, 3]", "checkpoint.every = [1, 2, 4]"]
        if self.arms:
            for name in ("größe µ", "stat|ic_*$", "c"):
                lines += ["[[arm]]", f'name = "{name}"', f"lr.warmup = {len(name)}"]
        sizes = [len(values) for values in self.axes.values()] + [3] * self.zip + [3] * self.arms
        if self.dice.random() < 0.2:  # the study grew: trials keep their numbers
            lines += ["[grown]", f"from = [{[draws, *(self.dice.randint(1, size) for size in sizes), max(len(self.seeds) - 1, 0)]}]"]
        (self.folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def read(self):
        return subprocess.run([ORACLE, "study", "table", self.folder, "--json", "--by", "trial", "--baseline", "none", "--mixed"],
                              capture_output=True, check=False)

    def write_trials(self):
        done = self.read()
        if done.returncode != 0:
            raise ValueError(f"the study is refused: {done.stderr.decode()}")
        self.trials = json.loads(done.stdout)["not_done"]
        base = f"{len(self.base.encode())} {self.base}\n" if self.base else ""
        digest = hashlib.sha256(base.encode() + "".join(f"{key} {len(value)} {value}\n" for key, value in self.set.items()).encode()).hexdigest()
        strict = self.dice.random() < 0.15
        unlike = self.dice.random() < 0.2
        for trial in self.trials:
            if self.dice.random() < 0.1:
                continue
            settings = trial["settings"]
            self.write_trial(trial["trial"], settings, digest, strict, unlike)
        # The program's JSON has not always the shortest text of a number, as Python's has: such records are left out.
        while refused := re.search(r"not as the study wrote it\n  at: (.*)", self.read().stderr.decode()):
            pathlib.Path(refused[1]).unlink()

    def write_trial(self, number_of_trial, settings, digest, strict, unlike):
        dice = self.dice
        state = dice.choices(["done", "failed", "timeout", "stopped"], [12, 1, 0.5, 4 if self.asha else 0.3])[0]
        figures = {metric: number(dice, self.scales[metric]) for metric in self.metrics if dice.random() < 0.93}
        figures = {name: None if dice.random() < 0.04 else value for name, value in sorted(figures.items())}
        facts = {"version": dice.choice(["1", "2"]) if strict else "1", "processor": "Zen", "isa": dice.choice(["avx2", "avx2", "avx512"]),
                 "libraries": dumped({"mpi": dice.choice(["4", "4", "5"]), "omp": 3}),
                 "state_sha256": dice.choice("ab") * 64, "validation_data": dice.choice("xy") if unlike else "x"}
        if unlike:
            facts["validation_measure"] = "tok" if settings.get("data.tokenizer") == "./tok" else "bytes"
            facts["text"] = dice.choice(["t", "t", "t", "u"])
        record = {"trial": number_of_trial, "state": state, "settings": settings, "directory": "", "figures": figures, "facts": facts}
        if state != "done":
            record["error"] = dice.choice(["", "error: no memory\n  at: rank 3\n", "killed | by <signal> 9 & \\more_$", "\x07bell"])
        if self.asha:
            reached = [4, 12, 36][:dice.randint(1, 3)]
            record["rungs"] = [{"steps": steps, "metric": None if dice.random() < 0.1 else number(dice, 1)} for steps in reached]
        record["study"] = digest
        folder = self.folder / str(number_of_trial)
        write_trial(folder, record)
        if dice.random() < 0.8:
            write_log(dice, folder / "run")

    def options(self):
        """Random options of a table."""
        dice, axes = self.dice, [*self.axes, *(["arm"] if self.arms else [])]
        words = []
        if axes and dice.random() < 0.5:
            axis = dice.choice(axes)
            words += ["--baseline", f"{axis}={dice.choice(self.axes[axis]) if axis in self.axes else 'c'}"]
        if dice.random() < 0.3:
            words += ["--metric", ",".join(metric + dice.choice(["", ":min", ":max"]) for metric in dice.sample(self.metrics, min(3, len(self.metrics))))]
        if axes and dice.random() < 0.3:
            words += ["--by", ",".join(dice.sample(axes, dice.randint(1, len(axes))))]
        if dice.random() < 0.2:
            words += ["--where", f"run.seed={dice.randint(1, 3)}"]
        for option, chance, values in (("--test", 0.3, ["wilcoxon", "t"]), ("--correction", 0.3, ["none", "holm"]),
                                       ("--confidence", 0.3, ["0.9", "0.99", "0.6"]), ("--sort", 0.2, [*axes, *self.metrics]),
                                       ("--pair", 0.1, [*axes, "run.seed", "loss"]), ("--front", 0.3, [",".join(dice.sample(self.metrics, 2))]
                                                                                      if len(self.metrics) > 1 else ["loss"]),
                                       ("--equivalent", 0.25, [f"{dice.choice(self.metrics)}={dice.choice(['0.01', '10', 'x'])}"]),
                                       ("--to", 0.2, ["validation_loss=1.5", "validation_loss=baseline", "validation_loss=baseline+0.1"])):
            if dice.random() < chance:
                words += [option, dice.choice(values)]
        return words + ["--mixed"] * (dice.random() < 0.5) + ["--stopped"] * (dice.random() < 0.2) + ["--no-notes"] * (dice.random() < 0.1)


def write_log(dice, folder):
    """A run's log, with what logs of others lack."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = [key for key in ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "bubble") if dice.random() < 0.85]
    clock, lines, events = 1.7e9 + dice.random() * 1e6, [], []
    timed, tokens = dice.random() < 0.9, dice.choice([0, 128])

    def stamp(at):
        return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    launches = [{"start": stamp(clock - 5), "version": "1", "hosts": [{"host": "h", "processor": "Zen", "load": dice.random()}],
                 "libraries": {"omp": "1", "mpi": dice.choice(["4", "5"])}}]
    step, last = 0, dice.randint(3, 12)
    while step < last:
        step += 1
        clock += dice.random()
        line = {"step": step} | ({"time": stamp(clock)} if timed else {})
        line |= {key: dice.choice([None, 0, "x"]) if dice.random() < 0.04 else 3 / step + dice.random() for key in keys}
        lines.append(line)
        if step % 4 == 0:
            clock += 2
            events.append({"event": "validation", "step": step, "loss": 3 / step + dice.random() / 10, "accuracy": dice.random(), "seconds": 1.5,
                           "time": stamp(clock)} | ({"tokens": tokens, "data": "d", "measure": dice.choice(["m", "m", "m", "n"])} if tokens else {}))
        if dice.random() < 0.06 and step > 2:  # another launch does steps once more
            step -= 2
            clock += 60
            launches.append({"start": stamp(clock)})
    for name, rows in (("metrics", lines), ("events", events), ("launches", launches)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text + dice.choice(["", "{cut", "[1]\n"]), encoding="utf-8")
    return lines, events


def write_run(dice, folder):
    lines, events = write_log(dice, folder)
    if dice.random() < 0.8:
        result = {"steps": lines[-1]["step"], "loss": lines[-1].get("loss"), "state_sha256": dice.choice("ab") * 64, "layout": "pp1",
                  "recorded": {"bubble": 0.5, "time": "now"}, "validation_loss": dice.random(), "flag": True, "list": [1]}
        if dice.random() < 0.3:
            del result["loss"]
        if events and dice.random() < 0.4:
            result["best_step"] = events[0]["step"]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    if dice.random() < 0.85:
        keys = {"run": {"seed": dice.randint(1, 2), "steps": 12, "name": '"n"'}, "optimizer": {"lr": dice.choice([1e-3, 1e-5])},
                "parallel": {"schedule": dice.choice(['"1f1b"', '"zb-v"'])}, "data": {"text": dice.choice(['"a.txt"', '"b.txt"'])},
                "checkpoint": {"best": dice.choice(['""', '"loss"'])}}
        if dice.random() < 0.3:
            del keys["optimizer"]
        (folder / "config.toml").write_text("".join(f"[{table}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
                                                    for table, values in keys.items()), encoding="utf-8")


def check_study(dice, at):
    study = Study(dice, dice.choice([f"studies/{at}", f"studies/ünï {at}"]))
    folder = str(study.folder)
    check(["study", "table", folder, "--json"])
    check(["study", "table", folder, "--json", "--mixed"])
    for _ in range(4):
        check(["study", "table", folder, "--json", *study.options()])
    for form in ("text", "csv", "markdown", "latex", "html"):
        cells = ["--cells", dice.choice(["mean-sd", "mean-ci", "difference", "full"])] if dice.random() < 0.6 else []
        check(["study", "table", folder, "--format", form, *cells, *study.options()])
    power = ["study", "power", folder, "--equivalent", f"{dice.choice(study.metrics)}=0.5", "--alpha", dice.choice(["0.05", "0.01", "0.2"])]
    check([*power, "--deviation", dice.choice(["0", "0.2", "1", "30"]), "--difference", dice.choice(["0", "-0.1", "0.6"]),
           "--seeds", str(dice.choice([2, 3, 5, 40])), "--json"])
    baseline = ["--baseline", f"{next(iter(study.axes))}={next(iter(study.axes.values()))[0]}"] if study.axes else []
    check([*power, "--pilot", folder, *baseline, "--json"])
    check([*power, "--pilot", folder, *baseline])
    check(["study", "power", folder, "--deviation", "0.3"])


def check_runs(dice, at):
    folders = [f"runs/{at}/{name}" for name in ("a", "ü b", "c/run", "d/run")[:dice.randint(1, 4)]]
    for folder in folders:
        write_run(dice, pathlib.Path(folder))
    check(["compare", *folders, "--json", "--out", "page.html"], without=("page",))
    check(["compare", *folders, "--json", "--out", "page.html", "--to", "validation_loss=0.7", "--baseline", "run=a", "--by", "run"], without=("page",))
    check(["study", "table", *folders, "--json", "--mixed"])
    check(["study", "table", *folders])
    check(["study", "table", f"runs/{at}", "--metric", "loss,train_s", "--mixed"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("tok").mkdir()
        for at in range(FIRST, FIRST + STUDIES):
            if len(Counts.failed) >= 8:
                break
            with contextlib.suppress(ValueError):  # a study that grew from what it cannot have been
                check_study(random.Random(at), at)
            if at % 4 == 0:
                check_runs(random.Random(at), at)
    sys.stdout.writelines(f"FAILED: {text[:2000]}\n" for text in Counts.failed)
    print(f"{STUDIES} studies, {(STUDIES + 3) // 4} sets of runs: {Counts.numbers} numbers equal to 1e-12 (worst {Counts.worst:.1e}), "
          f"{Counts.texts} texts written, {Counts.refusals} refusals")
    sys.exit(1 if Counts.failed else 0)


if __name__ == "__main__":
    main()
