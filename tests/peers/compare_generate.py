"""Compares `concertina generate` with transformers' generate() on the same model: same tokens, and tokens per second.

usage: python compare_generate.py --binary PROGRAM [--family gpt|llama] [--tokens N] [--prompt N] [--rounds N] [--threads N] [--json]

Trains a small model for one step, exports it, and continues a prompt greedily with both, alternately. Needs torch and transformers.
The exit code is 1 if the tokens differ.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import torch
import transformers


def run(*command, **options):
    return subprocess.run([str(one) for one in command], check=True, capture_output=True, text=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--family", choices=("gpt", "llama"), default="gpt")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    binary = pathlib.Path(options.binary).resolve()
    with tempfile.TemporaryDirectory() as folder:
        text = "".join(chr(97 + (7 * i * i + i // 5) % 26) for i in range(20000))
        pathlib.Path(folder, "text").write_text(text, encoding="utf-8")
        run(binary, "train", "data.text=text", "run.dir=runs", "run.name=one", "run.steps=3", f"run.threads={options.threads}", f"model.family={options.family}",
            f"model.layers={options.layers}", f"model.width={options.width}", f"model.heads={options.width // 64}", f"model.context={options.context}", "model.init_std=0.1",
            "batch.global=2", "batch.microbatches=2", "eval.batches=1", cwd=folder)
        run(binary, "checkpoint", "export", "runs/one", "--out", "model", cwd=folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder + "/model").eval()
        prompt = text[:options.prompt]
        inputs = torch.tensor([list(prompt.encode())])
        ours, theirs, same = [], [], True
        for _ in range(options.rounds):
            done = run(binary, "generate", "runs/one", "generate.prompt=" + prompt, f"generate.tokens={options.tokens}", "generate.temperature=0", "--json", cwd=folder)
            ours.append(float(re.search(r"\(([\d.e+]+) tokens/s\)", done.stderr)[1]))
            start = time.monotonic()
            with torch.no_grad():
                out = model.generate(inputs, attention_mask=torch.ones_like(inputs), do_sample=False, max_new_tokens=options.tokens, max_length=None, use_cache=True, pad_token_id=0, eos_token_id=None)
            theirs.append(options.tokens / (time.monotonic() - start))
            wanted = bytes(out[0, options.prompt:].tolist()).decode(errors="replace")
            same = same and json.loads(done.stdout)["text"] == wanted
    result = {"family": options.family, "ours": statistics.median(ours), "transformers": statistics.median(theirs), "same_tokens": same}
    result["ratio"] = result["ours"] / result["transformers"]
    print(json.dumps(result) if options.json else result)
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
