"""Makes published_keys.json: the effect of each key of config.json in transformers' own config classes.

python3 make_published_keys.py [NAME...] (torch 2.15, transformers 5.24). Each model of published/ is read
with one key of its config.json missing, null or unusual, for each key of the file, of the defaults of
transformers' class, and of older versions. A case has some of the logits, or null if they equal the model's
own. If transformers cannot read the model or all of its tensors, there is no case, since no result would be
right. tests/experiments/published_keys_test.cc reads each case, which must be rejected or give these logits.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers

transformers.logging.set_verbosity(transformers.logging.CRITICAL)
transformers.utils.logging.disable_progress_bar()
HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("bert-masked-lm bert-classification roberta-masked-lm distilbert-classification electra-classification "
          "gpt2 opt llama llama3 llama-yarn mistral qwen2 qwen3 phi3 gpt-neox phi vit").split()
# These have the same tensors as RoBERTa.
ALIASES = {"camembert": "Camembert", "xlm-roberta": "XLMRoberta"}
SIZES = {"architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "id2label", "label2id",
         "num_labels", "problem_type", "_name_or_path"}
# From older versions or other types.
OLDER = {"position_embedding_type": "absolute", "rope_theta": 10000.0, "rope_scaling": None, "rotary_pct": 0.25,
         "rotary_emb_base": 10000, "partial_rotary_factor": 0.5, "head_dim": 4, "attention_bias": False,
         "mlp_bias": False, "use_sliding_window": False, "sliding_window": 12, "tie_word_embeddings": True,
         "is_decoder": False, "n_inner": 24, "scale_embeddings": False, "embedding_size": 16,
         "use_parallel_residual": True, "qk_layernorm": False, "classifier_dropout": 0.1, "rope_interleaved": False}
PLACES = 8


def others(value):
    """Returns unusual values to replace `value`."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [0, 1, 2 * value] if value else [1, 4]
    if isinstance(value, str):
        return ["relu", "silu", "gelu_new", "none"]
    return [0, 1, 4, True]


def keys_of(config, kind):
    defaults = {**OLDER, **kind.config_class().to_dict(), **config}
    flat = {(key,): value for key, value in defaults.items() if key not in SIZES}
    for key in [key for key, value in flat.items() if isinstance(value, dict)]:
        flat.update({(*key, inner): value for inner, value in flat[key].items()})
    return flat


def changed(config, key, how, value=None):
    config = json.loads(json.dumps(config))
    inner = config
    for name in key[:-1]:
        inner = inner.setdefault(name, {})
    if how == "missing":
        if key[-1] not in inner:
            return None
        del inner[key[-1]]
    else:
        inner[key[-1]] = value
    return config


def logits_of(kind, folder, config, batch):
    """Returns None if transformers does not read all of it, or computes no numbers."""
    (folder / "config.json").write_text(json.dumps(config))
    try:
        parsed = kind.config_class.from_pretrained(folder)
        with torch.device("meta"):
            if sum(weight.numel() for weight in kind(parsed).parameters()) > 1e7:
                return None
        model, said = kind.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
        if any(said.values()):
            return None
        with torch.no_grad():
            logits = model.eval()(**batch).logits.flatten()
    except Exception:  # any error: there is no result
        return None
    return logits if logits.isfinite().all() else None


def cases_of(name, kind, folder, config, expected):
    shapes = {"pixel_values": (3, 3, 8, 8)}
    batch = {key: torch.tensor(value).reshape(shapes.get(key, (3, -1)))
             for key, value in expected.items() if key != "logits"}
    right = torch.tensor(expected["logits"])
    step = len(right) // 3 // PLACES or 1
    cases = []
    for key, usual in keys_of(config, kind).items():
        for how, value in [("missing", None), ("value", None), *(("value", one) for one in others(usual))]:
            new = changed(config, key, how, value)
            if new is None or new == config:
                continue
            logits = logits_of(kind, folder, new, batch)
            if logits is None or logits.shape != right.shape:
                continue
            same = (logits - right).abs().max() <= 1e-5 * right.abs().max()
            cases.append({"key": list(key), **({"value": value} if how == "value" else {}),
                          "logits": None if same else [round(x, 5) for x in logits[::step][:PLACES].tolist()]})
    return cases


def main():
    golden = HERE / "published_keys.json"
    all_cases = json.loads(golden.read_text()) if golden.exists() else {}
    names = sys.argv[1:] or [*MODELS, *ALIASES]
    for name in names:
        source = HERE / "published" / ("roberta-masked-lm" if name in ALIASES else name)
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            shutil.copy(source / "model.safetensors", folder)
            config = json.loads((source / "config.json").read_text())
            if name in ALIASES:
                config |= {"model_type": name, "architectures": [ALIASES[name] + "ForMaskedLM"]}
            kind = getattr(transformers, config["architectures"][0])
            expected = json.loads((source / "expected.json").read_text())
            all_cases[name] = cases_of(name, kind, folder, config, expected)
        other = sum(case["logits"] is not None for case in all_cases[name])
        print(f"{name}: {len(all_cases[name])} cases, {other} with other logits", flush=True)
        with golden.open("w") as file:
            file.write("{" + ",\n".join(f"{json.dumps(one)}: [\n" + ",\n".join(map(json.dumps, cases)) + "]"
                                        for one, cases in all_cases.items()) + "}\n")


main()
