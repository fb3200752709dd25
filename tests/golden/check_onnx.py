"""Runs exported ONNX models in onnxruntime and compares their logits.

  check_onnx.py runs CONCERTINA    trains a small run of each family and task, exports it, and compares
                                   with the logits written by `concertina eval --logits`; quantizes some
  check_onnx.py one MODEL LOGITS   compares an exported model with what `eval --logits LOGITS` wrote

Each model is run at three shapes (samples, tokens), including fewer tokens than it was trained with,
padded on the right and, if attention is causal, also on the left. Differences are the largest absolute
difference divided by the largest absolute logit. Both ONNX checkers must pass: that of the package
onnx, and that of /usr/bin/python3, if it has one (Debian's python3-onnx).

Needs numpy, onnx and onnxruntime; --venv DIRECTORY creates an environment with them from PyPI. Without
them, it says so and exits with 77, which Meson counts as skipped.
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "experiments" / "python"))
LIMIT = 1e-5


def libraries(venv):
    """Imports the third-party packages, or ends the program."""
    global np, onnx, ort
    try:
        import numpy as np
        import onnx
        import onnxruntime as ort
        return
    except ImportError as error:
        if not venv or os.environ.get("CONCERTINA_IN_VENV"):
            print(f"skipped: {error.name} is not installed; --venv DIRECTORY installs it from PyPI")
            sys.exit(77)
    python = pathlib.Path(venv) / "bin/python"
    made = python.exists() or subprocess.run([sys.executable, "-m", "venv", venv]).returncode == 0
    if not made or subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy", "onnx",
                                   "onnxruntime"]).returncode != 0:
        print("skipped: PyPI cannot be reached, or this Python has no venv")
        sys.exit(77)
    os.environ["CONCERTINA_IN_VENV"] = "1"
    os.execv(python, [str(python), *sys.argv])


# check_model(path, full_check=True) would write the inferred types to the file.
CHECK = """
import onnx, sys
onnx.checker.check_model(sys.argv[1])
onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1], load_external_data=False),
                                  check_type=True, strict_mode=True, data_prop=True)
"""


def check_files(path):
    """Runs both checkers with full shape inference."""
    subprocess.run([sys.executable, "-c", CHECK, str(path)], check=True)
    old = subprocess.run(["/usr/bin/python3", "-c", "import onnx"], capture_output=True)
    if old.returncode == 0:
        subprocess.run(["/usr/bin/python3", "-c", CHECK, str(path)], check=True)
    return ["onnx " + onnx.__version__] + ["python3-onnx"] * (old.returncode == 0)


class Model:
    def __init__(self, path):
        self.checkers = check_files(path)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.causal = "position_ids" in self.inputs

    def run(self, fields, left=0):
        """Returns the logits of fields [samples, ...] in Concertina's form; `left`: columns of padding."""
        feeds = {}
        if "pixel_values" in self.inputs:
            feeds["pixel_values"] = fields["image"].astype(np.float32)
        else:
            tokens = fields["tokens"].astype(np.int64)
            samples, width = tokens.shape
            lengths = fields.get("lengths", np.full(samples, width))
            mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
            pad = ((0, 0), (left, 0))
            feeds["input_ids"] = np.pad(tokens, pad)
            feeds["attention_mask"] = np.pad(mask, pad)
            feeds["token_type_ids"] = fields.get("types", np.zeros_like(tokens)).astype(np.int64)
            feeds["position_ids"] = np.pad(np.tile(np.arange(width), (samples, 1)), pad)
        feeds = {name: value for name, value in feeds.items() if name in self.inputs}
        out = self.session.run(None, feeds)
        names = [o.name for o in self.session.get_outputs()]
        logits = np.stack(out, -1) if names == ["start_logits", "end_logits"] else out[0]
        return logits[:, left:] if left and logits.ndim == 3 else logits


def difference(got, wanted):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    assert np.isfinite(got).all()
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def cut(model, fields, wanted, width):
    """Returns the samples cut to `width` tokens such that the first logits do not change: only
    padding or tokens after all compared ones are cut."""
    chosen = fields["lengths"] <= width if "lengths" in fields else np.ones(len(wanted), bool)
    short = {name: value[chosen][:, :width] if value.ndim == 2 else value[chosen]
             for name, value in fields.items()}
    return short, wanted[chosen][:, :width] if wanted.ndim == 3 else wanted[chosen]


def compare(model, fields, wanted):
    """Returns the largest difference at each shape."""
    found = {}

    def at(fields, wanted, left=0):
        if len(wanted) == 0:
            return
        tokens = fields.get("tokens")
        shape = [len(wanted)] + ([tokens.shape[1] + left] if tokens is not None else [])
        name = "x".join(map(str, shape)) + (f" ({left} left)" if left else "")
        found[name] = difference(model.run(fields, left), wanted)

    some = lambda n: ({k: v[:n] for k, v in fields.items()}, wanted[:n])
    at(*some(1))
    at(fields, wanted)
    if "image" in fields:
        at(*some(2))
        return found
    width = fields["tokens"].shape[1]
    shorter = width - width // 3
    at(*cut(model, fields, wanted, shorter))
    if model.causal:
        at(*cut(model, fields, wanted, shorter), left=3)
    return found


def report(name, model, found, shapes=3):
    worst = max(found.values())
    print(f"{name}: {worst:.1e} at most ({', '.join(f'{s}: {d:.1e}' for s, d in found.items())}); "
          f"passed {' and '.join(model.checkers)}")
    if worst > LIMIT:
        sys.exit(f"FAILED: {name} differs by more than {LIMIT}")
    if len(found) < shapes:
        sys.exit(f"FAILED: {name} was run at {len(found)} shapes, not {shapes}")


def golden_tensors(name):
    index = json.loads((HERE / f"{name}.json").read_text())
    data = (HERE / f"{name}.bin").read_bytes()
    tensors = {}
    for key, entry in index["tensors"].items():
        kind = np.float32 if entry["type"] == "f32" else np.int32
        count = int(np.prod(entry["shape"]))
        tensors[key] = np.frombuffer(data, kind, count, entry["offset"]).reshape(entry["shape"])
    return index["config"], tensors


def one(path, logits):
    folder = pathlib.Path(logits)
    fields = {file.stem: np.load(file) for file in folder.glob("*.npy")}
    wanted = fields.pop("logits")
    model = Model(path)
    report(str(path), model, compare(model, fields, wanted), 2)  # all samples may be full


def write_data(folder):
    """Writes small generated files of each format, always the same."""
    random = np.random.default_rng(5)
    words = "the of and to in that he shall unto for his a they be is with not all it".split()
    sentence = lambda n: " ".join(random.choice(words, n))
    (folder / "text.txt").write_text("\n".join(sentence(12) for _ in range(400)))
    rows = [f"{sentence(random.integers(1, 8))}\t{random.integers(0, 2)}" for _ in range(200)]
    (folder / "pairs.tsv").write_text("sentence\tlabel\n" + "\n".join(rows) + "\n")
    (folder / "words.conll").write_text("\n".join(
        "".join(f"{word} {'O' if len(word) < 4 else 'B-LONG'}\n" for word in sentence(5).split())
        for _ in range(200)))
    paragraphs = []
    for i in range(60):
        context = sentence(random.integers(4, 9))
        answer = context.split()[1]
        paragraphs.append({"context": context, "qas": [{
            "id": str(i), "question": sentence(3),
            "answers": [{"text": answer, "answer_start": context.index(" " + answer) + 1}]}]})
    (folder / "squad.json").write_text(json.dumps(
        {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    images = random.integers(0, 256, (120, 28, 28), np.uint8)
    (folder / "images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, *images.shape) +
                                               images.tobytes())
    labels = random.integers(0, 10, 120).astype(np.uint8)
    (folder / "labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 120) + labels.tobytes())


def cases(folder):
    text, tsv = [f"data.text={folder}/text.txt"], f'data.files=["{folder}/pairs.tsv"]'
    mnist = f'data.files=["{folder}/images-idx3-ubyte", "{folder}/labels-idx1-ubyte"]'
    bert = "model.family=bert"  # bytes and four special tokens
    classified = ["model.vocab=260", "model.task=classification", "data.format=tsv"]
    return {
        "gpt": ["model.family=gpt", *text],
        "gpt-bf16": ["model.family=gpt", "numerics.compute=bf16", *text],
        "llama": ["model.family=llama", "model.llama.kv_heads=2", *text],
        "llama-tied": ["model.family=llama", "model.llama.tied=true", *text],
        "bert-masked-lm": [bert, "model.vocab=260", *text],
        "gpt-classification": ["model.family=gpt", *classified, tsv],
        "llama-classification": ["model.family=llama", *classified, tsv],
        "bert-classification": [bert, *classified, tsv],
        "bert-regression": [bert, "model.vocab=260", "model.task=regression", "model.classes=1",
                            "data.format=tsv", tsv],
        "gpt-multi-label": ["model.family=gpt", "model.vocab=260", "model.task=multi-label",
                            "data.format=tsv", tsv],
        "bert-tokens": [bert, "model.vocab=260", "model.task=token-classification", "data.format=conll",
                        f'data.files=["{folder}/words.conll"]'],
        "llama-tokens": ["model.family=llama", "model.vocab=260", "model.task=token-classification",
                         "data.format=conll", f'data.files=["{folder}/words.conll"]'],
        "bert-squad": [bert, "model.vocab=260", "model.task=question-answering", "data.format=squad",
                       f'data.files=["{folder}/squad.json"]', "model.context=96"],
        "vit": ["model.family=vit", "model.classes=10", "data.format=mnist", mnist],
    }


def runs(program):
    sizes = ["model.layers=2", "model.width=32", "model.heads=4", "model.context=32",
             "batch.global=8", "batch.microbatches=4", "run.steps=40", "run.threads=1",
             "optimizer.lr=0.02", "lr.warmup=2", "data.validation=0.2"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_data(folder)

        def concertina(*arguments):
            done = subprocess.run([program, *arguments], cwd=folder, text=True,
                                  capture_output=True)
            if done.returncode != 0:
                sys.exit(f"FAILED: concertina {' '.join(arguments)}\n{done.stdout}{done.stderr}")

        for case, keys in cases(folder).items():
            concertina("train", *sizes, *keys, f"run.name={case}")
            # Everything in fp32: a run in bf16 exports the fp32 weights that it stores.
            concertina("eval", f"runs/{case}", "numerics.compute=fp32", "eval.batches=1",
                       "--logits", f"logits/{case}")
            concertina("checkpoint", "export", f"runs/{case}", "--onnx", "--out", f"onnx/{case}")
            concertina("checkpoint", "export", f"runs/{case}", "--onnx", "--out", f"apart/{case}",
                       "--inline-limit", "0")
            os.chdir(folder)
            one(f"onnx/{case}/model.onnx", f"logits/{case}")
            one(f"apart/{case}/model.onnx", f"logits/{case}")
            if case in ("gpt", "bert-classification", "vit"):
                quantized(f"onnx/{case}/model.onnx", f"logits/{case}")


def quantized(path, logits):
    """Quantizes a model in both ways, with the same samples to calibrate and to measure."""
    import concertina
    for kind, calibrate in (("dynamic", None), ("static", logits)):
        before, after = concertina.quantize(path, f"{path}.{kind}", logits, calibrate)
        print(f"{path}, {kind} int8: {before} -> {after}")
        if after["bytes"] >= before["bytes"] or after["agreement"] < 0.9 or abs(after["loss"] - before["loss"]) > 0.05:
            sys.exit(f"FAILED: {path} changes too much as {kind} int8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["runs", "one"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--venv", default=os.environ.get("CONCERTINA_ONNX_VENV"),
                        help="where to make a Python environment; default $CONCERTINA_ONNX_VENV")
    arguments = parser.parse_args()
    libraries(arguments.venv)
    paths = arguments.paths if arguments.what == "one" else [
        str(pathlib.Path(arguments.paths[0]).resolve())]
    {"runs": runs, "one": one}[arguments.what](*paths)


main()
