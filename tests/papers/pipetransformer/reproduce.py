#!/usr/bin/env python3
"""Fine-tunes pretrained models while freezing layers as PipeTransformer (He et al., ICML 2021)
does, and without freezing, and reports the effect: accuracy, speed-up, and the seconds to an
accuracy, with PASS or FAIL against expected.json of experiments/papers/pipetransformer.

1. makes the data of the task and pretrains its model, once: OUT/TASK/pretrained is kept;
2. runs a study whose arms are in arms.toml, seed by seed: OUT/TASK/FORM.toml;
3. prints the tables and verdicts, and writes a page and figures below OUT/TASK.

A stopped run is resumed. Seeds, and the arms of --quick and --confirm, are in expected.json. Exits
with 1 on FAIL."""
import gzip
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import arms  # noqa: E402
import published  # noqa: E402
import verdicts  # noqa: E402

PAPER = str(arms.PAPER)

MPIRUN = "mpirun -n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"


def fail(what, fix):
    sys.exit(f"reproduce.py: {what}\n  try: {fix}")


def require_files(paths, fix):
    for path in paths:
        if not os.path.exists(path):
            fail(f"{path} does not exist", fix)


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().rstrip("\n").split("\n")


class Vit:
    """Printed letters, then handwritten digits."""
    layers, epochs, batch, held_out = 12, 10, 64, 6000
    pretrain_steps = 16000

    def __init__(self, options, folder):
        self.images = [os.path.join(options.data, "mnist", f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1")]
        self.letters = os.path.join(folder, "letters")
        require_files(self.images, "--data DIR with mnist/t10k-*.gz")
        with gzip.open(self.images[1]) as file:
            self.samples = int.from_bytes(file.read(8)[4:], "big")
        self.steps = (self.samples - self.held_out) / self.batch

    def make_data(self, _):
        if not os.path.exists(os.path.join(self.letters, "glyphs.json")):
            made = subprocess.run([sys.executable, os.path.join(HERE, "glyphs.py"), self.letters], check=False)
            if made.returncode != 0:  # it has said why
                sys.exit(made.returncode)

    def pretrain_keys(self):
        return [f'data.files=["{self.letters}/letters-images", "{self.letters}/letters-labels"]']

    def finetune_keys(self):
        return {"data.files": self.images, "data.validation": self.held_out / self.samples, "batch.global": self.batch}


class Bert:
    """Masked words in sentences about films, then whether a sentence praises its film."""
    layers, epochs, batch = 12, 5, 64
    held_out = 2000 + 872  # the last ones of train.tsv, and dev.tsv
    pretrain_steps, vocabulary = 8000, 4000

    def __init__(self, options, folder):
        self.phrases, self.dev = [os.path.join(options.data, "sst2", f"{name}.tsv") for name in ("train", "dev")]
        self.sentences, self.tokenizer = os.path.join(folder, "sentences.tsv"), os.path.join(folder, "bpe")
        require_files([self.phrases, self.dev], "--data DIR with sst2/train.tsv and sst2/dev.tsv")

    def samples(self):
        return len(rows_of(self.sentences)) - 1

    @property
    def steps(self):
        return (self.samples() - self.held_out) / self.batch

    def make_data(self, run):
        """The phrases of train.tsv that are not part of a longer one, then the sentences of dev.tsv."""
        if not os.path.exists(self.tokenizer):
            run("data", "train-tokenizer", self.phrases, "--vocabulary", str(self.vocabulary), "--prefix-space",
                "--out", self.tokenizer, *(word for name in ("PAD", "CLS", "SEP", "MASK") for word in ("--special", f"[{name}]")))
        if os.path.exists(self.sentences):
            return
        header, *rows = rows_of(self.phrases)
        phrases = [f" {row.split(chr(9))[0].strip()} " for row in rows]
        whole, text = [], ""
        for index in sorted(range(len(rows)), key=lambda index: -len(phrases[index])):
            if phrases[index] not in text:
                whole.append(index)
                text += phrases[index] + "\t"
        with open(self.sentences + ".part", "w", encoding="utf-8") as file:
            file.write("\n".join([header, *(rows[index] for index in sorted(whole)), *rows_of(self.dev)[1:]]) + "\n")
        os.replace(self.sentences + ".part", self.sentences)

    def pretrain_keys(self):
        return [f"data.files={self.phrases}", f"data.validation_files={self.dev}", f"data.tokenizer={self.tokenizer}",
                f"model.vocab={self.vocabulary}"]

    def finetune_keys(self):
        return {"data.files": self.sentences, "data.validation": self.held_out / self.samples(), "batch.global": self.batch}


TASKS = {"bert": Bert, "vit": Vit}


class Reproduction:
    def __init__(self, options):
        published.use_program(options.program)
        self.options, self.binary = options, os.environ["CONCERTINA"]
        self.folder = os.path.abspath(os.path.join(options.out, options.task))
        os.makedirs(self.folder, exist_ok=True)
        self.task = TASKS[options.task](options, self.folder)
        self.expected = published.read_expected(os.path.join(PAPER, "expected.json"))["tasks"][options.task]
        self.form = "quick" if options.quick else "confirm" if options.confirm else "explore"
        if self.form not in self.expected:
            fail(f"expected.json has no claim about {options.task} to confirm", "--quick, or neither")
        self.study = os.path.join(self.folder, "studies", self.form)

    def run(self, *words, launch=False):
        command = (shlex.split(self.options.mpirun) if launch else []) + [self.binary, *words]
        done = subprocess.run(command, check=False)
        if done.returncode != 0:
            sys.exit(f"failed with {done.returncode}: {shlex.join(command)}")

    def pretrain(self):
        """Trains the model from which all arms start, unless it exists."""
        self.task.make_data(self.run)
        if os.path.exists(os.path.join(self.folder, "pretrained", "result.json")):
            return
        config = "@" + os.path.join(PAPER, f"pretrain-{self.options.task}.toml")
        self.run("train", config, f"run.dir={self.folder}", "run.name=pretrained",
                 f"run.steps={self.task.pretrain_steps}", "parallel.pp=1", *self.task.pretrain_keys(), launch=True)

    def arms(self):
        """The arms that the form names in expected.json, or all."""
        want, task = self.expected, self.task
        chosen = arms.arms_of(want, task.layers, task.epochs, task.steps)
        names = self.options.arms or want[self.form].get("arms", list(chosen))
        names = dict.fromkeys(["static gpipe", "static", *names])  # all are compared with these
        unknown = [name for name in names if name not in chosen]
        if unknown:
            fail(f"unknown arm {unknown[0]}", f"--arms of: {', '.join(chosen)}")
        return {name: chosen[name] for name in names}

    def write_study(self):
        seeds = self.expected[self.form]["seeds"]
        keys = {"model.from": os.path.join(self.folder, "pretrained"), "eval.every": round(self.task.steps), **self.task.finetune_keys()}
        claim = {"metric": self.expected["metric"], "margin": self.expected["margin"], "baseline": "arm=static"}
        path = os.path.join(self.folder, f"{self.form}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(arms.study_text(os.path.join(PAPER, f"finetune-{self.options.task}.toml"), keys, self.arms(), seeds, claim))
        return path

    def figures(self):
        metric = self.expected["metric"]
        self.run("study", "table", self.study, "--metric", f"train_s,{metric}", "--to", f"{metric}=baseline",
                 "--to", f"{metric}=baseline-{self.expected['margin']}")
        self.run("study", "table", self.study, "--front", f"train_s,{metric}")
        self.run("study", "report", self.study)
        self.run("study", "plot", self.study, "--kind", "front", "--x", "train_s", "--y", metric,
                 "--out", os.path.join(self.folder, f"{self.form}-front.svg"))


def parse():
    parser = published.parser(__doc__)
    parser.add_argument("task", choices=sorted(TASKS), help="what is fine-tuned")
    parser.add_argument("--out", default="runs/pipetransformer", help="folder for all results")
    parser.add_argument("--data", default="data", metavar="DIR", help="folder with mnist/t10k-*.gz and sst2/*.tsv")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="few arms, three seeds")
    form.add_argument("--confirm", action="store_true",
                      help="few arms, with seeds not used to select arms, as many as the power requires")
    parser.add_argument("--arms", nargs="+", metavar="NAME", help="only these, static gpipe and static")
    parser.add_argument("--mpirun", default=MPIRUN, help="command that launches two ranks")
    parser.add_argument("--until", choices=["data", "pretrained", "study"], help="stop after that")
    return parser.parse_args()


def main():
    options = parse()
    work = Reproduction(options)
    if options.until == "data":
        return work.task.make_data(work.run)
    work.pretrain()
    if options.until == "pretrained":
        return None
    work.run("study", "run", work.write_study(), "--dir", os.path.dirname(work.study))
    if options.until == "study":
        return None
    work.figures()
    return verdicts.Verdicts(work).say()


if __name__ == "__main__":
    main()
