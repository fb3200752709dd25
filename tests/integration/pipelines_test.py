"""Uses exported folders unchanged, as transformers' users would: pipelines_test.py PROGRAM [NAME...]

In each case, a small model is trained and exported, and its run, tokenizer and data are moved away,
so that only what the run has stored is read. AutoTokenizer must give the tokens that, according to
`eval --logits`, the program read, and the task's pipeline the answer that follows from these logits;
onnxruntime the same logits for the tokenizer's inputs. With lm-eval (`pip install lm-eval`), the log
likelihood of a text in lm-evaluation-harness must match the logits. The last line counts.

Needs torch and transformers; without them, it says so and exits with 77, which Meson counts as
skipped.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import transformers
    from transformers import AutoTokenizer, pipeline
except ImportError as error:
    print(f"skipped: {error.name} is not installed")
    sys.exit(77)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LIMIT = 1e-5
SIZES = ["model.layers=2", "model.width=32", "model.heads=4", "batch.global=8", "batch.microbatches=2",
         "run.steps=30", "run.threads=1", "optimizer.lr=0.01", "data.validation=0.2"]
WORDS = "the of and to in that he shall unto for his a they be is with not all it (yes) don't Café!".split()


def sentences(count, seed, low=3, high=7):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(low, high))) for _ in range(count)]


def write_data(folder):
    (folder / "text.txt").write_text("\n".join(sentences(400, 1)) + "\n")
    rows = sentences(120, 2)
    (folder / "rows.tsv").write_text("sentence\tlabel\n" + "".join(
        f"{row} {i}\t{('sad', 'glad', 'so-so')[i % 3]}\n" for i, row in enumerate(rows)))
    paragraphs = []
    for i, context in enumerate(sentences(60, 3, 5, 9)):
        answer = context.split()[2]
        paragraphs.append({"context": context, "qas": [{"id": str(i), "question": f"what is {i}", "answers": [
            {"text": answer, "answer_start": len(" ".join(context.split()[:2])) + 1}]}]})
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": [
        {"title": "t", "paragraphs": paragraphs}]}))
    rng = random.Random(4)
    (folder / "images.bin").write_bytes(b"".join(
        bytes([i % 10]) + bytes(rng.randrange(256) for _ in range(3072)) for i in range(80)))
    (folder / "batches.meta.txt").write_text("\n".join(
        "airplane automobile bird cat deer dog frog horse ship truck".split()) + "\n")
    letters = sorted(set("".join(WORDS).lower().replace("é", "e")) | set("0123456789"))
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "and", "shall", "##o"] + letters + \
        ["##" + letter for letter in letters if letter != "o"]
    (folder / "words").mkdir()
    (folder / "words" / "vocab.txt").write_text("\n".join(vocab) + "\n")


def cases():
    text, tsv = ["data.text=text.txt"], ["data.format=tsv", "data.files=rows.tsv", "model.task=classification",
                                         "model.classes=3", "model.context=48"]
    squad = ["data.format=squad", "data.files=squad.json", "model.task=question-answering", "model.context=64"]
    bert, words = "model.family=bert", ["data.tokenizer=words/vocab.txt", "model.vocab=128"]
    learned = ["data.tokenizer=learned", "model.vocab=300"]
    return {
        "gpt-bytes": ["model.family=gpt", "model.context=32", *text],
        "llama-learned": ["model.family=llama", "model.context=32", *text, *learned],
        "gpt-pair": ["model.family=gpt", "model.context=32", *text, "data.tokenizer=pair", "model.vocab=300"],
        "bert-masked": [bert, "model.context=32", *text, *words],
        "bert-masked-bytes": [bert, "model.context=48", *text, "model.vocab=260"],
        "bert-classes": [bert, *tsv, *words],
        "bert-classes-bytes": [bert, *tsv, "model.vocab=260"],
        "gpt-classes-learned": ["model.family=gpt", *tsv, *learned],
        "llama-classes-pair": ["model.family=llama", *tsv, "data.tokenizer=pair", "model.vocab=300"],
        "bert-answers": [bert, *squad, *words],
        "vit": ["model.family=vit", "model.vit.channels=3", "model.vit.image=32", "model.vit.patch=8",
                "model.classes=10", "data.format=cifar10", "data.files=images.bin",
                "data.mean=[0.5, 0.4, 0.3]", "data.deviation=[0.2, 0.3, 0.25]"],
    }


class Folder:
    """The data, the program, and the output of the last command."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        write_data(folder)
        self.run("data", "train-tokenizer", "text.txt", "--vocabulary", "280", "--out", "learned")
        described = json.loads((folder / "learned" / "tokenizer.json").read_text())["model"]
        (folder / "pair").mkdir()
        (folder / "pair" / "vocab.json").write_text(json.dumps(described["vocab"]))
        (folder / "pair" / "merges.txt").write_text("#version: 0.2\n" + "".join(
            (merge if isinstance(merge, str) else " ".join(merge)) + "\n" for merge in described["merges"]))
        self.sources = [path.name for path in folder.iterdir()]

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, text=True, capture_output=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            raise AssertionError(f"concertina {' '.join(arguments)}\n{done.stdout}{done.stderr}")

    def make(self, name, keys):
        """Returns the exported folder, and the model's output for its held-out samples."""
        self.run("train", *SIZES, *keys, f"run.name={name}")
        self.run("eval", f"runs/{name}", "eval.batches=1", "--logits", f"{name}/logits")
        aside = self.folder / "aside"
        aside.mkdir()
        for source in self.sources:
            (self.folder / source).rename(aside / source)
        try:
            self.run("checkpoint", "export", f"runs/{name}", "--out", f"{name}/out")
            self.run("checkpoint", "export", f"runs/{name}", "--onnx", "--out", f"{name}/onnx")
        finally:
            for source in self.sources:
                (aside / source).rename(self.folder / source)
            aside.rmdir()
        fields = {file.stem: np.load(file) for file in (self.folder / name / "logits").glob("*.npy")}
        return self.folder / name / "out", fields


def near(got, wanted, what):
    error = float(np.abs(np.asarray(got) - np.asarray(wanted)).max() / max(np.abs(wanted).max(), 1))
    assert error <= LIMIT, f"{what}: {error:.1e}"


def softmax(logits):
    parts = np.exp(logits - logits.max())
    return parts / parts.sum()


def equal(got, wanted, what):
    assert list(got) == list(wanted), f"{what}: {list(got)} instead of {list(wanted)}"


def scores_of(answer):
    """Returns scores by label; transformers 5 has a list in a list."""
    return {one["label"]: one["score"] for one in (answer[0] if isinstance(answer[0], list) else answer)}


def rows_of(folder):
    """Returns all rows of the table; the tokens show which are held out."""
    return [line.split("\t") for line in (folder.folder / "rows.tsv").read_text().splitlines()[1:]]


def check_classes(folder, out, fields):
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.model_max_length == 48
    read = pipeline("text-classification", str(out), top_k=None)
    seen = {tuple(tokens[:length]): logits for tokens, length, logits in
            zip(fields["tokens"], fields["lengths"].reshape(-1), fields["logits"])}
    found = 0
    for text, _ in rows_of(folder):
        logits = seen.get(tuple(tokenizer(text)["input_ids"]))
        if logits is None:
            continue
        found += 1
        scores = scores_of(read(text))
        equal(sorted(scores), ["glad", "sad", "so-so"], "names of classes")
        near([scores[name] for name in ("glad", "sad", "so-so")], softmax(logits), text)
    assert found == len(fields["logits"]) > 10, f"{found} of {len(fields['logits'])} samples have the same tokens"
    return tokenizer(rows_of(folder)[0][0], return_tensors="np")


def check_text(folder, out, fields):
    text = (folder.folder / "text.txt").read_text()
    tokenizer = AutoTokenizer.from_pretrained(out)
    ids = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    # The held-out part is the end of the text, in windows.
    windows = fields["tokens"]
    width = windows.shape[1]
    whole = " ".join(map(str, ids))
    for window in windows[:3]:
        assert " ".join(map(str, window)) in whole, "the tokenizer's tokens are not those of the program"
    assert tokenizer.decode(ids[:20]) == text[:len(tokenizer.decode(ids[:20]))]
    logits = fields["logits"].reshape(len(windows), width, -1)
    read = pipeline("text-generation", str(out))
    near(read.model(torch.from_numpy(windows[:2]).long()).logits.detach().numpy(), logits[:2], "logits")
    said = read("the", do_sample=False)[0]["generated_text"]
    assert said.startswith("the") and len(tokenizer(said)["input_ids"]) <= width, said
    said = read(["the", "shall not"], do_sample=False, max_new_tokens=4)
    assert len(said) == 2
    harness(out, tokenizer, read.model, text)
    return tokenizer("the of and", return_tensors="np")


def harness(out, tokenizer, model, text):
    """Returns the log likelihood from lm-evaluation-harness, if it is installed."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        return
    words = text.split(" ")
    if tokenizer.eos_token is None:  # it needs one for a text without context
        return
    context, rest = " ".join(words[:4]), " " + " ".join(words[4:8])
    tested = HFLM(pretrained=str(out), device="cpu", batch_size=2, dtype="float32")
    asked = [Instance("loglikelihood", {}, arguments, i) for i, arguments in
             enumerate([(context, rest), (words[0], rest)])]
    got = [value for value, _ in tested.loglikelihood(asked, disable_tqdm=True)]
    for (before, after), value in zip([(context, rest), (words[0], rest)], got):
        start = tokenizer(before, add_special_tokens=False)["input_ids"]
        ids = tokenizer(before + after, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        near(value, sum(scores[i - 1, ids[i]].item() for i in range(len(start), len(ids))), "lm-eval")
    harness.used = getattr(harness, "used", 0) + 1


def check_mask(folder, out, fields):
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.mask_token == "[MASK]" and tokenizer.pad_token == "[PAD]"
    # A window is a piece of text without special tokens, in which some tokens are masked.
    model = transformers.AutoModelForMaskedLM.from_pretrained(out)
    with torch.no_grad():
        said = model(torch.from_numpy(fields["tokens"][:2]).long()).logits.numpy()
    places = fields["targets"][:2] >= 0
    logits = fields["logits"]
    if logits.shape[1] == fields["tokens"].shape[1]:
        near(said[places], logits[:2][places], "logits")
    assert (fields["tokens"] == tokenizer.mask_token_id).any()
    read = pipeline("fill-mask", str(out))
    text = f"the of {tokenizer.mask_token} to"
    inputs = tokenizer(text, return_tensors="pt")
    assert inputs["input_ids"][0, 0] == tokenizer.cls_token_id and inputs["input_ids"][0, -1] == tokenizer.sep_token_id
    at = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.no_grad():
        wanted = model(**inputs).logits[0, at].softmax(-1)
    near(read(text, top_k=1)[0]["score"], wanted.max().item(), "fill-mask")
    return tokenizer("the of and", return_tensors="np")


def check_answers(folder, out, fields):
    tokenizer = AutoTokenizer.from_pretrained(out)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(out)
    seen = {tuple(tokens[:length]): logits for tokens, length, logits in
            zip(fields["tokens"], fields["lengths"].reshape(-1), fields["logits"])}
    found = 0
    for one in json.loads((folder.folder / "squad.json").read_text())["data"][0]["paragraphs"]:
        inputs = tokenizer(one["qas"][0]["question"], one["context"], return_tensors="pt")
        logits = seen.get(tuple(inputs["input_ids"][0].tolist()))
        if logits is None:
            continue
        found += 1
        with torch.no_grad():
            said = model(**inputs)
        length = inputs["input_ids"].shape[1]
        both = torch.stack([said.start_logits[0], said.end_logits[0]], -1).numpy()
        near(both, logits.reshape(-1, 2)[:length], "logits of spans")
    assert found == len(fields["logits"]) > 5, f"{found} of {len(fields['logits'])}"
    if "question-answering" in transformers.pipelines.SUPPORTED_TASKS:
        read = pipeline("question-answering", str(out))
        said = read(question=one["qas"][0]["question"], context=one["context"])
        assert said["answer"] in one["context"]
    return inputs


def check_images(folder, out, fields):
    from PIL import Image
    data = (folder.folder / "images.bin").read_bytes()
    read = pipeline("image-classification", str(out), top_k=10)
    wanted = {tuple(np.round(image.reshape(-1)[:50], 4)): logits
              for image, logits in zip(fields["image"], fields["logits"])}
    found = 0
    for i in range(80):
        pixels = np.frombuffer(data[i * 3073 + 1:(i + 1) * 3073], np.uint8).reshape(3, 32, 32)
        image = Image.fromarray(pixels.transpose(1, 2, 0))
        values = read.image_processor(image, return_tensors="np")["pixel_values"]
        logits = wanted.get(tuple(np.round(values.reshape(-1)[:50], 4)))
        if logits is None:
            continue
        found += 1
        scores = scores_of(read(image))
        assert "airplane" in scores
        names = [read.model.config.id2label[label] for label in range(10)]
        near([scores[name] for name in names], softmax(logits), "image")
    assert found == len(fields["logits"]) > 5, f"{found} of {len(fields['logits'])}"
    return {"pixel_values": values}


def check_onnx(path, out, inputs):
    try:
        import onnxruntime
    except ImportError:
        return
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {name: np.asarray(value) for name, value in inputs.items()}
    if "input_ids" in feeds:
        tokens = feeds["input_ids"]
        feeds["position_ids"] = np.tile(np.arange(tokens.shape[1]), (len(tokens), 1))
        feeds.setdefault("token_type_ids", np.zeros_like(tokens))
    named = {one.name for one in session.get_inputs()}
    got = session.run(None, {name: value for name, value in feeds.items() if name in named})[0]
    kind = getattr(transformers, json.loads((out / "config.json").read_text())["architectures"][0])
    with torch.no_grad():
        said = kind.from_pretrained(out)(**{name: torch.from_numpy(np.asarray(value)) for name, value in inputs.items()})
    near(got, said[0].numpy(), "onnxruntime")


CHECKS = {"classes": check_classes, "masked": check_mask, "answers": check_answers, "vit": check_images}


def main():
    program, chosen = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(program, pathlib.Path(name))
        todo = {name: keys for name, keys in cases().items() if not chosen or name in chosen}
        for case, keys in todo.items():
            check = next((check for part, check in CHECKS.items() if part in case), check_text)
            try:
                out, fields = folder.make(case, keys)
                inputs = check(folder, out, fields)
                check_onnx(folder.folder / case / "onnx" / "model.onnx", out, inputs)
                card = (out / "README.md").read_text()
                assert "steps | 30" in card and "held out | loss" in card and "concertina train" in card, card
                print(f"{case}: {', '.join(sorted(path.name for path in out.iterdir()))}", flush=True)
            except Exception as error:  # any error: the folder is not ready for use
                bad += 1
                print(f"FAILED: {case}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(todo) - bad} of {len(todo)} exports are ready for use; transformers {transformers.__version__}, "
          f"lm-eval on {getattr(harness, 'used', 0)}")
    sys.exit(bad > 0)


main()
