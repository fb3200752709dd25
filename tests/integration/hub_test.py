"""Imports models as published on the Hugging Face hub: hub_test.py PROGRAM [NAME...]

For each row of tests/golden/hub_models.py, transformers creates a model of that config.json with
random weights; its file gets the tensor names and extra tensors of the published one; `concertina
checkpoint import` reads it and `concertina eval --logits` computes. Logits must be within 1e-5 of
transformers'. The model is exported with the program's own config.json, which transformers must
read without missing, unexpected or reshaped tensors, with the same logits; and to ONNX, with the
same logits in onnxruntime, if it is installed. The exported weights of a body without a head must
be unchanged. Rejected models must say why. Each model of hub_models.TUNED is then trained for a few
steps for each task of its family, exported, and read by transformers with the same logits. The last
line counts.

Needs torch, transformers and safetensors; without them, it says so and exits with 77, which Meson
counts as skipped.
"""
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import hub_models  # noqa: E402

try:
    import numpy as np
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"skipped: {error.name} is not installed")
    sys.exit(77)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LIMIT = 1e-5


def kind_of(config):
    """Returns the class for a config.json, which may not name it."""
    if "architectures" in config:
        return config["architectures"][0]
    return "BertForPreTraining"


def make_model(config):
    kind = getattr(transformers, kind_of(config))
    parts = {key: copy.deepcopy(value) for key, value in config.items()
             if key not in ("model_type", "architectures")}
    if config.get("torch_dtype"):
        parts["torch_dtype"] = "float32"
    model = kind(kind.config_class(**parts)).float().eval()
    for name, weight in model.named_parameters():
        near = 1 if "norm" in name.lower() and name.endswith("weight") else 0
        with torch.no_grad():
            weight.normal_(near, 0.2)
    return model


def published_tensors(model, config, differs, folder):
    """Returns what save_pretrained() writes, with the hub's names and extra tensors."""
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    body = model.base_model_prefix + "."
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    prefix = body if any(name.startswith(body) for name in tensors) else ""
    if "old" in differs:
        tensors = {name.replace("LayerNorm.weight", "LayerNorm.gamma")
                   .replace("LayerNorm.bias", "LayerNorm.beta"): value for name, value in tensors.items()}
    if "next" in differs:
        tensors.setdefault("cls.seq_relationship.weight", torch.randn(2, config["hidden_size"]))
        tensors.setdefault("cls.seq_relationship.bias", torch.randn(2))
    if "positions" in differs:
        tensors[prefix + "embeddings.position_ids"] = torch.arange(32)[None]
    if "pooler" in differs:
        width = config["hidden_size"]
        tensors[prefix + "pooler.dense.weight"] = torch.randn(width, width)
        tensors[prefix + "pooler.dense.bias"] = torch.randn(width)
    for layer in range(layers or 0):
        if "mask" in differs:
            mask = torch.tril(torch.ones(1, 1, 32, 32))
            tensors[f"{prefix}h.{layer}.attn.bias"] = mask.bool() if "bool" in differs else mask
        if "frequencies" in differs:
            attention = "attention" if config["model_type"] == "gpt_neox" else "self_attn"
            tensors[f"{prefix}layers.{layer}.{attention}.rotary_emb.inv_freq"] = torch.ones(4)
    if "bare" in differs:
        tensors = {name.removeprefix(body): value for name, value in tensors.items()}
    return {name: value.contiguous() for name, value in tensors.items()}


def write_data(folder):
    """Writes small files of each format, always the same."""
    rng = random.Random(5)
    words = "the of and to in that he shall unto for his a they be is with not all it".split()
    sentence = lambda n: " ".join(rng.choices(words, k=n))
    (folder / "text.txt").write_text("\n".join(sentence(9) for _ in range(60)))
    for classes in range(2, 10):
        (folder / f"rows{classes}.tsv").write_text("sentence\tlabel\n" + "".join(
            f"{sentence(rng.randrange(1, 6))} {i}\t{i % classes}\n" for i in range(60)))
        (folder / f"words{classes}.conll").write_text("\n".join(
            "".join(f"{word} {k % classes}\n" for k, word in enumerate(f"{i} {sentence(9)}".split()))
            for i in range(60)))
    paragraphs = []
    for i in range(40):
        context = " ".join(rng.choices("abcdefgh", k=6))
        paragraphs.append({"context": context, "qas": [{"id": str(i), "question": f"q {i}", "answers": [
            {"text": context[4], "answer_start": 4}]}]})
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": [
        {"title": str(i), "paragraphs": [one]} for i, one in enumerate(paragraphs)]}))
    (folder / "scores.tsv").write_text("sentence\tscore\n" + "".join(
        f"{sentence(rng.randrange(1, 6))} {i}\t{i / 7}\n" for i in range(60)))
    (folder / "labels.jsonl").write_text("".join(json.dumps(
        {"text": f"{sentence(4)} {i}", "labels": [k for k in range(3) if i % (k + 2) == 0]}) + "\n"
        for i in range(60)))
    images = bytearray()
    for i in range(60):
        images += bytes([i % 10]) + bytes(rng.randrange(256) for _ in range(3072))
    (folder / "images.bin").write_bytes(images)


def data_of(config, folder):
    """Returns data keys for the model's task, and a function that gets logits from transformers."""
    kind = kind_of(config)
    common = ["data.validation=0.2"]
    if "QuestionAnswering" in kind:
        return [*common, "data.format=squad", f'data.files=["{folder}/squad.json"]']
    if kind.startswith("ViT"):
        if len(config.get("id2label", {})) != 10:
            return []
        return [*common, "data.format=cifar10", f'data.files=["{folder}/images.bin"]']
    if "SequenceClassification" in kind:
        classes = len(config["id2label"])
        return [*common, "data.format=tsv", f'data.files=["{folder}/rows{max(classes, 2)}.tsv"]']
    if "TokenClassification" in kind:
        return [*common, "data.format=conll",
                f'data.files=["{folder}/words{len(config["id2label"])}.conll"]']
    return [*common, f"data.text={folder}/text.txt"]


# The data keys of each task, with FOLDER in them; the last two are for BERT's family.
TASKS = {"classification": ["model.classes=3", "data.format=tsv", 'data.files=["FOLDER/rows3.tsv"]'],
         "regression": ["model.classes=1", "data.format=tsv", 'data.files=["FOLDER/scores.tsv"]'],
         "multi-label": ["model.classes=3", "data.format=jsonl", 'data.files=["FOLDER/labels.jsonl"]'],
         "token-classification": ["model.classes=3", "data.format=conll", 'data.files=["FOLDER/words3.conll"]'],
         "causal-lm": ["data.text=FOLDER/text.txt"],
         "masked-lm": ["data.text=FOLDER/text.txt"],
         "question-answering": ["data.format=squad", 'data.files=["FOLDER/squad.json"]']}


def tasks_of(config):
    encoder = config["model_type"] in ("bert", "roberta", "camembert", "xlm-roberta", "distilbert", "electra")
    return [task for task in TASKS if task not in (("causal-lm",) if encoder else
                                                   ("masked-lm", "question-answering"))]


def inputs_of(model, folder):
    """Returns the inputs written by `eval --logits`, and the logits."""
    fields = {file.stem: torch.from_numpy(np.load(file)) for file in folder.glob("*.npy")}
    wanted = fields.pop("logits").numpy()
    if "image" in fields:
        inputs = {"pixel_values": fields["image"].reshape(-1, 3, 32, 32)}
    else:
        tokens = fields["tokens"].long()
        inputs = {"input_ids": tokens}
        if "lengths" in fields:
            inputs["attention_mask"] = (torch.arange(tokens.shape[1]) <
                                        fields["lengths"].reshape(-1, 1)).long()
        if "types" in fields and "DistilBert" not in type(model).__name__ and \
                getattr(model.config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"] = fields["types"].long()
    return inputs, wanted


def difference(model, folder):
    """Returns the relative error of transformers' logits for the inputs of `eval --logits`."""
    inputs, wanted = inputs_of(model, folder)
    with torch.no_grad():
        out = model(**inputs)
    got = torch.stack([out.start_logits, out.end_logits], -1) if hasattr(out, "start_logits") else \
        getattr(out, "logits", getattr(out, "prediction_logits", None))
    got = got.numpy().reshape(wanted.shape)
    if "attention_mask" in inputs and wanted.ndim == 3:
        mask = inputs["attention_mask"].bool().numpy()
        got, wanted = got[mask], wanted[mask]
    return np.abs(got - wanted).max() / np.abs(wanted).max()


def read_again(model, folder):
    """Returns the model that transformers reads from `folder`, and what is wrong with it."""
    kind = type(model) if "PreTraining" not in type(model).__name__ else transformers.BertForMaskedLM
    return read_as(kind, folder)


def read_as(kind, folder):
    try:
        found, said = kind.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    except Exception as error:  # any error: transformers cannot read the folder
        return None, f"transformers: {error}"
    bad = {key: value for key, value in said.items() if value}
    return found.eval(), f"transformers says {bad}" if bad else ""


class Hub:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        write_data(folder)

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, text=True,
                              capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})

    def start(self, name, config):
        keys = ["batch.global=8", "batch.microbatches=2", "run.threads=1", *data_of(config, self.folder)]
        return self.run("checkpoint", "import", name, "--out", f"runs/{name}",
                        *(word for key in keys for word in ("--set", key)))

    def check(self, hub_name, config, differs):
        """Returns an empty string, or what is wrong."""
        torch.manual_seed(len(hub_name))
        name = hub_name.replace("/", "--")
        folder = self.folder / name
        model = make_model(config)
        tensors = published_tensors(model, config, differs, folder)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config))
        done = self.start(name, config)
        if done.returncode != 0:
            return done.stderr.strip()
        kind = kind_of(config)
        bare = kind in ("BertModel", "ViTModel") or kind == "ElectraForPreTraining" or not data_of(config, folder)
        return self.same_body(name, tensors) if bare else self.same_logits(name, model)

    def same_logits(self, name, model):
        done = self.run("eval", f"runs/{name}", "eval.batches=1", "--logits", f"{name}/logits")
        if done.returncode != 0:
            return done.stderr.strip()
        error = difference(model, self.folder / name / "logits")
        self.worst = max(getattr(self, "worst", 0), error)
        if error > LIMIT:
            return f"logits differ by {error:.1e}"
        return self.exported(name, model) or self.onnx(name)

    def exported(self, name, model):
        """With another stored type, so that config.json is the program's own."""
        kept = self.folder / "runs" / name / "model" / "config.json"
        kept.write_text(json.dumps({**json.loads(kept.read_text()), "dtype": "float16"}))
        done = self.run("checkpoint", "export", f"runs/{name}", "--out", f"{name}/out")
        if done.returncode != 0:
            return done.stderr.strip()
        again, problem = read_again(model, self.folder / name / "out")
        if problem:
            return problem
        error = difference(again, self.folder / name / "logits")
        return "" if error <= LIMIT else f"logits of the exported model differ by {error:.1e}"

    def onnx(self, name):
        done = self.run("checkpoint", "export", f"runs/{name}", "--onnx", "--out", f"{name}/onnx")
        if done.returncode != 0:
            return done.stderr.strip()
        golden = pathlib.Path(__file__).resolve().parent.parent / "golden"
        done = subprocess.run([sys.executable, golden / "check_onnx.py", "one", f"{name}/onnx/model.onnx",
                               f"{name}/logits"], cwd=self.folder, text=True, capture_output=True)
        self.in_onnx = getattr(self, "in_onnx", 0) + (done.returncode == 0)
        return "" if done.returncode in (0, 77) else f"{done.stdout}{done.stderr}".strip()

    def tuned(self, name, config, task):
        """Trains the model for a task; returns an empty string, or what is wrong with the result."""
        torch.manual_seed(7)
        source, out = self.folder / name, self.folder / f"{name} {task}"
        if not source.exists():
            make_model(config).save_pretrained(source)
            (source / "config.json").write_text(json.dumps(config))
        run = f"{name} {task}".replace(" ", "-").replace(",", "")
        keys = [key.replace("FOLDER", str(self.folder)) for key in TASKS[task]]
        for words in (
                ["train", f"model.from={source}", f"model.task={task}", f"run.name={run}", "run.steps=3",
                 "optimizer.lr=0.01", "batch.global=8", "batch.microbatches=2", "run.threads=1", "checkpoint.every=3",
                 "data.validation=0.2", "model.context=24", *keys],
                ["eval", f"runs/{run}", "eval.batches=1", "--newest", "--logits", str(out / "logits")],
                ["checkpoint", "export", f"runs/{run}", "--newest", "--out", str(out)]):
            done = self.run(*words)
            if done.returncode != 0:
                return f"{words[0]}: {done.stderr.strip()[-300:]}"
        kind = json.loads((out / "config.json").read_text())["architectures"][0]
        model, problem = read_as(getattr(transformers, kind), out)
        if problem:
            return problem
        error = difference(model, out / "logits")
        self.worst = max(getattr(self, "worst", 0), error)
        return "" if error <= LIMIT else f"logits differ by {error:.1e}"

    def same_body(self, name, tensors):
        done = self.run("checkpoint", "export", f"runs/{name}", "--out", f"{name}/out")
        if done.returncode != 0:
            return done.stderr.strip()
        out = load_file(self.folder / name / "out" / "model.safetensors")
        known = 0
        for own, value in tensors.items():
            found = [theirs for theirs in out if theirs == own or theirs.endswith("." + own)]
            if not found:
                continue
            known += 1
            if not torch.equal(out[found[0]].reshape(value.shape), value):
                return f"{own} changed"
        layers = [own for own in tensors if "layer." in own]
        return "" if known > len(layers) > 0 else f"{known} tensors are exported, of {len(layers)} of layers"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    rows = [(group, name, *row) for group, table in (("tried", hub_models.TRIED), ("more", hub_models.MORE))
            for name, row in table.items() if not sys.argv[2:] or name in sys.argv[2:]]
    read, refused, wrong = {"tried": 0, "more": 0}, 0, []
    with tempfile.TemporaryDirectory() as folder:
        hub = Hub(program, pathlib.Path(folder))
        for group, name, config, differs in rows:
            problem, why = hub.check(name, config, differs), hub_models.REFUSED.get(name)
            if why is not None and why in problem:
                refused += 1
                print(f"refused {name}: {problem.splitlines()[0]}")
            elif why is not None or problem:
                wrong.append(name)
                print(f"WRONG   {name}: {problem or 'it was accepted, but should be rejected'}")
            else:
                read[group] += 1
                print(f"read    {name}")
        tuned = [(name, task) for name, config in hub_models.TUNED.items() for task in tasks_of(config)
                 if not sys.argv[2:] or f"{name} {task}" in sys.argv[2:] or name in sys.argv[2:]]
        for name, task in tuned:
            problem = hub.tuned(name, hub_models.TUNED[name], task)
            print(f"{'WRONG  ' if problem else 'trained'} {name} for {task}{': ' + problem if problem else ''}",
                  flush=True)
            if problem:
                wrong.append(f"{name} {task}")
        rows += tuned
        print(f"{read['tried']} of {len(hub_models.TRIED)} that users tried, {read['more']} of "
              f"{len(hub_models.MORE)} more are read; {refused} refused with a reason; largest "
              f"difference of logits {getattr(hub, 'worst', 0):.1e}; {getattr(hub, 'in_onnx', 0)} also "
              f"in onnxruntime; transformers {transformers.__version__}")
    print(f"{len(rows) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


main()
