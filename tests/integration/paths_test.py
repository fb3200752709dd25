#!/usr/bin/env python3
"""Trains with each kind of data, task or option, at random layouts and with kills: the final weights always have the same
hash. Usage: paths_test.py CONCERTINA [--layouts N] [--seed S] [--only TEXT] -- MPIRUN ARGUMENTS...

Per path: one rank; then N (2) random layouts of up to four ranks; then a run that is killed (SIGKILL to all ranks) at
random times, continuing at another layout each time, until it ends. `--layouts 10` is a soak that takes minutes."""
import argparse
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

STEPS, MICROBATCHES, LAYERS = 60, 12, 6
BASE = f"""[run]
threads = 1
steps = {STEPS}
[model]
layers = {LAYERS}
width = 32
heads = 4
context = 24
dropout = 0.1
attention_dropout = 0.1
[batch]
global = 24
microbatches = {MICROBATCHES}
[checkpoint]
every = 5
[log]
every = 20
"""
BERT = ["model.family=bert", "model.vocab=260"]
VIT = ["model.family=vit", "model.vit.image=8", "model.vit.channels=1", "model.vit.patch=4", "model.classes=10"]
CLASSES = [*BERT, "model.task=classification", "model.classes=3"]


def png(width, height, grey):
    """Returns an image from the bytes `grey`, row by row."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + grey[y * width:(y + 1) * width] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_data():
    draw = random.Random(1)
    words = "star ship sea far deep sun moon under over light".split()
    texts = [" ".join(draw.choice(words) for _ in range(draw.randrange(2, 9))) + f" {i}" for i in range(300)]
    pathlib.Path("text").write_text("\n".join(texts))
    with open("rows.csv", "w") as file:
        file.write("sentence,label\n")
        file.writelines(f'"{text}, {{""{i}""}}",{"abc"[i % 3]}\n' for i, text in enumerate(texts))
    with open("rows.jsonl", "w") as file:
        file.writelines(json.dumps({"sentence1": text, "sentence2": texts[-1 - i], "label": i % 3}) + "\n"
                        for i, text in enumerate(texts))
    pathlib.Path("more").write_text("\n".join(reversed(texts)))
    with open("scores.csv", "w") as file:
        file.write("sentence,score\n")
        file.writelines(f"{text},{draw.uniform(-2, 5):.3f}\n" for text in texts)
    with open("labels.jsonl", "w") as file:
        file.writelines(json.dumps({"text": text, "labels": [name for name in "abc" if draw.random() < 0.4]}) + "\n"
                        for text in texts)
    with open("words.txt", "w") as file:
        for text in texts:
            file.writelines(f"{word} {'B-NUM' if word.isdigit() else 'O'}\n" for word in text.split())
            file.write("\n")
    for i in range(120):
        folder = pathlib.Path("images", "abc"[i % 3])
        folder.mkdir(parents=True, exist_ok=True)
        width, height = draw.randrange(8, 20), draw.randrange(8, 20)
        folder.joinpath(f"{i}.png").write_bytes(png(width, height, draw.randbytes(width * height)))
    with open("images-idx3-ubyte", "wb") as images, open("labels-idx1-ubyte", "wb") as labels:
        images.write(b"".join(number.to_bytes(4, "big") for number in (2051, 240, 8, 8)))
        labels.write(b"".join(number.to_bytes(4, "big") for number in (2049, 240)))
        for i in range(240):
            images.write(bytes(draw.randrange(256) for _ in range(64)))
            labels.write(bytes([i % 5]))


PATHS = {
    "gpt": ["data.text=text"],
    "biases alone": ["data.text=text", 'freeze.tensors=["*", "!*.bias"]', "model.init_std=0.05"],
    "neox, smoothed": ["data.text=text", "model.family=neox", "model.label_smoothing=0.1"],
    "csv": [*CLASSES, "data.format=csv", "data.files=rows.csv"],
    "jsonl, the best kept": [*CLASSES, "data.format=jsonl", "data.files=rows.jsonl", "eval.every=10",
                             "checkpoint.best=validation_loss"],
    "scores": [*BERT, "model.task=regression", "model.classes=1", "data.format=csv", "data.files=scores.csv"],
    "several labels": [*BERT, "model.task=multi-label", "model.classes=3", "data.format=jsonl",
                       "data.files=labels.jsonl"],
    "words": [*BERT, "model.task=token-classification", "model.classes=2", "data.format=conll",
              "data.files=words.txt"],
    "packed": ["data.format=jsonl", "data.files=rows.jsonl", "data.text_columns=sentence1", "data.documents=packed",
               "model.context=48"],
    "mixed": ['data.text=["text", "more"]', "data.weights=[0.7, 0.3]"],
    "image folder": [*VIT[:-1], "model.classes=3", "data.format=image-folder", "data.files=images", "data.size=8",
                     "data.scale=0.5", "data.flip=true", "data.rotate=10", "data.randaugment=2"],
    "images, flipped": [*VIT, "data.format=mnist", 'data.files=["images-idx3-ubyte", "labels-idx1-ubyte"]',
                        "data.crop=1", "data.flip=true"],
}


class Launches:
    def __init__(self, program, mpirun, draw):
        self.program, self.mpirun, self.draw = program, mpirun, draw

    def start(self, name, keys, layout):
        ranks = layout["pp"] * layout["dp"] + layout["spare"]
        parallel = [f"parallel.{key}={value}" for key, value in layout.items()]
        return subprocess.Popen([*self.mpirun, "-n", str(ranks), self.program, "train", "@base.toml",
                                 f"run.name={name}", *keys, *parallel], start_new_session=True,
                                stdout=open("log", "w"), stderr=subprocess.STDOUT)

    def run(self, name, keys, layout):
        if self.start(name, keys, layout).wait() != 0:
            raise SystemExit(f"{name} at {layout}:\n{pathlib.Path('log').read_text()[-3000:]}")
        return self.end(name)

    @staticmethod
    def end(name):
        return json.loads(pathlib.Path("runs", name, "result.json").read_text())["state_sha256"]

    @staticmethod
    def kept(name):
        """Returns whether a complete checkpoint exists: a run killed before its first one asks what to do."""
        return len([*pathlib.Path("runs", name, "checkpoints").glob("step-*")]) > 1

    def layout(self):
        draw = self.draw
        pp, dp = draw.choice([(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)])
        schedules = ["1f1b", "gpipe", "zb-h1", "zb-h2", *(["interleaved-1f1b", "zb-v"] if pp > 1 else [])]
        return {"pp": pp, "dp": dp, "spare": draw.randrange(2) if pp * dp < 4 else 0,
                "schedule": draw.choice(schedules)}

    def killed(self, name, keys, seconds):
        """Kills its launches at random times, each at another layout; the last one ends. Returns their number."""
        for launch in range(1, 100):
            process = self.start(name, keys, self.layout())
            try:
                code = process.wait(self.draw.uniform(0.3, 1) * seconds if launch <= 3 else None)
            except subprocess.TimeoutExpired:
                while not self.kept(name) and process.poll() is None:
                    time.sleep(0.005)
                if process.poll() is not None:
                    return launch
                ranks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for one in [str(process.pid), *ranks]:  # each rank has its own process group
                    os.kill(int(one), signal.SIGKILL)
                process.wait()
                while any(pathlib.Path("/proc", rank).exists() for rank in ranks):
                    time.sleep(0.01)
                continue
            if code != 0:
                raise SystemExit(f"{name}, killed before:\n{pathlib.Path('log').read_text()[-3000:]}")
            return launch


def main():
    words = sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--layouts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    cut = words.index("--")
    options, mpirun = parser.parse_args(words[:cut]), words[cut + 1:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("base.toml").write_text(BASE)
        write_data()
        wrong = 0
        for path, keys in PATHS.items():
            if options.only not in path:
                continue
            launches = Launches(options.program, mpirun, random.Random(f"{options.seed} {path}"))
            name = path.replace(" ", "-").replace(",", "")
            begin = time.monotonic()
            alone = launches.run(f"{name}-alone", keys, {"pp": 1, "dp": 1, "spare": 0, "schedule": "1f1b"})
            seconds = time.monotonic() - begin
            hashes = {}
            for i in range(options.layouts):
                layout = launches.layout()
                hashes[str(layout)] = launches.run(f"{name}-{i}", keys, layout)
            killed = launches.killed(f"{name}-killed", keys, seconds)
            hashes[f"killed {killed - 1} times"] = launches.end(f"{name}-killed")
            others = [where for where, one in hashes.items() if one != alone]
            wrong += bool(others)
            print(f"{path}: {alone[:12]} at {1 + len(hashes)} layouts, killed {killed - 1} times"
                  + "".join(f"\n  OTHER BITS: {where}" for where in others), flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
