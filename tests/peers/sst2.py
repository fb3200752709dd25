#!/usr/bin/env python3
"""SST-2 with the recipe bert-sst2.toml, here and in PyTorch, over several seeds, and with a bag of words.

python tests/peers/sst2.py build/experiments/concertina DIR [--seeds 5] [--work DIR] [--json FILE]

DIR has train.tsv and dev.tsv (GLUE's SST-2: a sentence and a label per row). Python needs torch,
transformers, tokenizers and scikit-learn.

Both sides train the same model on the same tokens with the same optimizer (Muon and AdamW), rates, dropout,
batches and number of steps, each with its own initial weights, order of samples and dropout masks. Both
evaluate equally often on all of dev.tsv, and the best evaluation counts (`checkpoint.best = "accuracy"`), so
both results are of models selected on the sentences used to evaluate them. The bag of words is scikit-learn's
logistic regression over words and pairs of words.
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tomllib

RECIPE = pathlib.Path(__file__).parents[2] / "experiments" / "recipes" / "bert-sst2.toml"
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"]
BETAS, EPS, CLIP = (0.9, 0.95), 1e-8, 1.0


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row[0] for row in rows], [int(row[1]) for row in rows]


def bag_of_words(train, held_out):
    """Returns the accuracy and the seconds that it takes."""
    import time

    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    begin = time.monotonic()
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+", binary=True), LogisticRegression(max_iter=1000))
    model.fit(*train)
    return model.score(*held_out), time.monotonic() - begin


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}")
    return done.stdout


def ours(options, seed):
    """Returns the accuracy of the best checkpoint, as computed by `eval`."""
    keys = [f"data.files={options.data}/train.tsv", f"data.validation_files={options.data}/dev.tsv",
            f"data.tokenizer={options.work}/bpe", f"run.dir={options.work}", f"run.name=run-{seed}", f"run.seed={seed}",
            "checkpoint.best=accuracy", f"run.threads={options.threads}"]
    run([options.binary, "train", f"@{RECIPE}", *keys])
    figures = json.loads(run([options.binary, "eval", options.work / f"run-{seed}", "--json"]))
    return figures["accuracy"]


def encoded(sentences, tokenizer, context):
    import torch

    specials = [tokenizer.token_to_id(name) for name in SPECIAL]
    tokens = torch.full((len(sentences), context), specials[0])
    lengths = []
    for row, one in enumerate(tokenizer.encode_batch(sentences, add_special_tokens=False)):
        ids = [specials[1], *one.ids[:context - 2], specials[2]]
        tokens[row, :len(ids)] = torch.tensor(ids)
        lengths.append(len(ids))
    return tokens, torch.arange(context) < torch.tensor(lengths)[:, None]


def model_of(recipe):
    from transformers import BertConfig, BertForSequenceClassification

    sizes = recipe["model"]
    return BertForSequenceClassification(BertConfig(
        vocab_size=sizes["vocab"], hidden_size=sizes["width"], num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"], intermediate_size=4 * sizes["width"],
        max_position_embeddings=sizes["context"], hidden_dropout_prob=sizes["dropout"],
        attention_probs_dropout_prob=0, classifier_dropout=0, num_labels=2, pad_token_id=0))


def rules_of(model, recipe):
    """Muon for the matrices between hidden activations, AdamW for all else."""
    import torch

    decay, rate = recipe["optimizer"]["weight_decay"], recipe["optimizer"]["lr"]
    hidden = [value for name, value in model.named_parameters() if value.ndim == 2 and (".layer." in name or "pooler" in name)]
    others = [value for value in model.parameters() if all(value is not one for one in hidden)]
    adamw = [{"params": [one for one in others if one.ndim >= 2], "weight_decay": decay},
             {"params": [one for one in others if one.ndim < 2], "weight_decay": 0.0}]
    return [torch.optim.Muon(hidden, lr=rate, weight_decay=decay, momentum=0.95, nesterov=True,
                             adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(adamw, lr=rate, betas=BETAS, eps=EPS)]


def rate_at(step, recipe):
    """Returns the fraction of the peak rate in update `step`, counted from 1."""
    warmup, least, steps = recipe["lr"]["warmup"], recipe["lr"]["min"], recipe["run"]["steps"]
    if step <= warmup:
        return step / warmup
    progress = (step - warmup) / (steps - warmup)
    return least + (1 - least) * (1 + math.cos(math.pi * progress)) / 2


def accuracy_of(model, tokens, mask, labels):
    import torch

    model.eval()
    with torch.no_grad():
        right = sum((model(tokens[i:i + 128], attention_mask=mask[i:i + 128]).logits.argmax(-1)
                     == labels[i:i + 128]).sum().item() for i in range(0, len(labels), 128))
    model.train()
    return right / len(labels)


def peer(train, held_out, recipe, seed):
    """Returns the best accuracy of PyTorch's run."""
    import torch

    torch.manual_seed(seed)
    tokens, mask, labels = train
    model, batch = model_of(recipe), recipe["batch"]["global"]
    rules = rules_of(model, recipe)
    best, order = 0.0, torch.empty(0, dtype=torch.int64)
    for step in range(1, recipe["run"]["steps"] + 1):
        while len(order) < batch:
            order = torch.cat([order, torch.randperm(len(labels))])
        rows, order = order[:batch], order[batch:]
        longest = int(mask[rows].sum(-1).max())
        loss = model(tokens[rows, :longest], attention_mask=mask[rows, :longest], labels=labels[rows]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for rule in rules:
            for group in rule.param_groups:
                group["lr"] = recipe["optimizer"]["lr"] * rate_at(step, recipe)
            rule.step()
            rule.zero_grad()
        if step % recipe["eval"]["every"] == 0:
            best = max(best, accuracy_of(model, *held_out))
    return best


def summary(values):
    return {"mean": statistics.mean(values), "sd": statistics.stdev(values), "seeds": len(values)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="of concertina")
    parser.add_argument("data", type=pathlib.Path, help="folder of train.tsv and dev.tsv")
    parser.add_argument("--seeds", type=int, default=5, help="at least 2; default 5")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides; default 1")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("sst2-peers"),
                        help="folder of runs and tokens, must not exist; default sst2-peers")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all results")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds must be at least 2 to compute a deviation")
    options.work.mkdir(parents=True)

    import tokenizers
    import torch

    torch.set_num_threads(options.threads)
    recipe = tomllib.loads(RECIPE.read_text())
    train, held_out = rows_of(options.data / "train.tsv"), rows_of(options.data / "dev.tsv")
    words, seconds = bag_of_words(train, held_out)
    print(f"bag of words: {100 * words:.1f}% of {len(held_out[1])} in {seconds:.0f} s", flush=True)
    command = [options.binary, "data", "train-tokenizer", options.data / "train.tsv", "--vocabulary",
               recipe["model"]["vocab"], "--prefix-space", "--out", options.work / "bpe"]
    run(command + [word for special in SPECIAL for word in ("--special", special)])
    tokenizer = tokenizers.Tokenizer.from_file(str(options.work / "bpe" / "tokenizer.json"))
    context = recipe["model"]["context"]
    sets = [(*encoded(sentences, tokenizer, context), torch.tensor(labels)) for sentences, labels in (train, held_out)]
    mine, theirs = [], []
    for seed in range(1, options.seeds + 1):
        mine.append(ours(options, seed))
        theirs.append(peer(*sets, recipe, seed))
        print(f"seed {seed}: ours {100 * mine[-1]:.1f}%, PyTorch {100 * theirs[-1]:.1f}%", flush=True)
    figures = {"bag_of_words": words, "ours": summary(mine), "pytorch": summary(theirs)}
    for name in ("ours", "pytorch"):
        one = figures[name]
        print(f"{name}: {100 * one['mean']:.2f}% +- {100 * one['sd']:.2f} (sd of {one['seeds']} seeds)")
    least = figures["pytorch"]["mean"] - figures["pytorch"]["sd"]
    print("ours is", "within" if figures["ours"]["mean"] >= least else "below", "PyTorch's deviation")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(0 if figures["ours"]["mean"] >= least else 1)


if __name__ == "__main__":
    main()
