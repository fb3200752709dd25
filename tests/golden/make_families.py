"""Makes family_*.{json,bin} for tests/models/golden_test.cc with Hugging Face's transformers:
python3 make_families.py (torch 2.15, transformers 5).

Each file has a tiny model of one family and task with random weights, one batch, its logits, its loss and
every gradient, computed in float64. Names and layouts are Concertina's: matrices are stored [in, out], with
query, key and value concatenated, and gate and up concatenated. Gradients are those of the sum of all losses
over valid targets, divided by their number; for spans, a sample is one target.
"""

import numpy as np
import torch
import torch.nn.functional as F
import transformers

from make_golden import File

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
RANDOM = np.random.default_rng(7)
SAMPLES, CONTEXT, VOCAB, WIDTH, HEADS, LAYERS = 3, 10, 37, 24, 4, 2


def randomize(model):
    """Makes weights large enough that everything matters; norms' are close to 1."""
    model = model.double().eval()
    for name, weight in model.named_parameters():
        near = 1 if "norm" in name.lower() and name.endswith("weight") else 0
        with torch.no_grad():
            weight.normal_(near, 0.2)
    return model


def joined(*layers):
    """Concatenates maps that read the same rows: [in, sum of out], and the bias."""
    return (torch.cat([layer.weight for layer in layers]).T,
            None if layers[0].bias is None else torch.cat([layer.bias for layer in layers]))


class Tensors:
    """Concertina's name -> how to get it from the weights or from their gradients."""

    def __init__(self):
        self.getters = {}

    def plain(self, name, parameter):
        self.getters[name] = lambda of: of(parameter)

    def norm(self, unit, norm, name="ln"):
        self.plain(f"{unit}/{name}.weight", norm.weight)
        if getattr(norm, "bias", None) is not None:
            self.plain(f"{unit}/{name}.bias", norm.bias)

    def dense(self, unit, name, *layers):
        self.getters[f"{unit}/{name}.weight"] = lambda of: torch.cat(
            [of(layer.weight) for layer in layers]).T
        if layers[0].bias is not None:
            self.getters[f"{unit}/{name}.bias"] = lambda of: torch.cat(
                [of(layer.bias) for layer in layers])

    def write(self, file):
        for name, get in self.getters.items():
            file.add(name, get(lambda p: p.detach()))
            file.add(f"grad {name}", get(lambda p: p.grad))


def finish(name, config, tensors, fields, logits, loss, valid):
    file = File(f"family_{name}", config)
    (loss / valid).backward()
    for field, value in fields.items():
        file.add(f"field {field}", value)
    tensors.write(file)
    file.add("logits", logits.reshape(-1))
    file.add("loss", (loss / valid).reshape(1))
    file.write()
    print(f"{name}: loss {(loss / valid).item():.6f}")


def unit(layer, kind):
    return f"{1 + 2 * layer + (kind == 'mlp'):03d}.{kind}"


HEAD = f"{2 * LAYERS + 1:03d}.head"
SIZES = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "context": CONTEXT, "vocab": VOCAB,
         "samples": SAMPLES, "classes": 3}


def integers(low, high, *shape):
    return torch.from_numpy(RANDOM.integers(low, high, shape))


def llama_config(tied, **more):
    return transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5, tie_word_embeddings=tied, rope_theta=1000.0,
        attn_implementation="eager", **more)


def llama_body(tied, model):
    t = Tensors()
    t.plain("wte" if tied else "000.embedding/wte", model.model.embed_tokens.weight)
    for i, layer in enumerate(model.model.layers):
        a, m = layer.self_attn, layer.mlp
        t.norm(unit(i, "attention"), layer.input_layernorm)
        t.dense(unit(i, "attention"), "qkv", a.q_proj, a.k_proj, a.v_proj)
        t.dense(unit(i, "attention"), "proj", a.o_proj)
        t.norm(unit(i, "mlp"), layer.post_attention_layernorm)
        t.dense(unit(i, "mlp"), "gate_up", m.gate_proj, m.up_proj)
        t.dense(unit(i, "mlp"), "down", m.down_proj)
    t.norm(HEAD, model.model.norm)
    return t


def llama_sizes(task, tied):
    return SIZES | {"family": "llama", "task": task, "options": {
        "kv_heads": 2, "hidden": 40, "rope_theta": 1000.0, "norm_eps": 1e-5, "tied": tied}}


def llama(tied):
    model = randomize(transformers.LlamaForCausalLM(llama_config(tied)))
    tokens, targets = integers(0, VOCAB, SAMPLES, CONTEXT), integers(-1, VOCAB, SAMPLES, CONTEXT)
    logits = model(input_ids=tokens).logits
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=-1,
                           reduction="sum")
    t = llama_body(tied, model)
    if not tied:
        t.dense(HEAD, "head", model.lm_head)
    finish("llama_tied" if tied else "llama", llama_sizes("causal-lm", tied), t,
           {"tokens": tokens, "targets": targets}, logits, loss, (targets >= 0).sum())


PADDING = VOCAB - 1  # marks the end of a sample for transformers' causal models


def padded_batch():
    lengths = torch.tensor([CONTEXT, 1, 6])
    tokens = integers(0, PADDING, SAMPLES, CONTEXT)
    return {"tokens": torch.where(torch.arange(CONTEXT) < lengths[:, None], tokens, PADDING),
            "lengths": lengths, "label": torch.tensor([2, -1, 0])}


NO_SCORE = float(np.finfo(np.float32).min)


def scored(fields, logits, scores, binary):
    """Adds the scores to the fields; returns the sum of their losses and the number of scores."""
    fields["scores"], there = scores, scores != NO_SCORE
    kind = F.binary_cross_entropy_with_logits if binary else F.mse_loss
    return kind(logits[there], scores[there], reduction="sum"), there.sum()


def some_scores(binary):
    """3 samples with 3 logits each, one score missing."""
    scores = integers(0, 2, SAMPLES, 3).double() if binary else torch.from_numpy(
        RANDOM.normal(size=(SAMPLES, 3)))
    scores[1, 2] = NO_SCORE
    return scores


def tagged(mask):
    """One of 3 classes per token; ignores tokens that are not the first of a word."""
    return torch.where(mask.bool(), integers(-1, 3, SAMPLES, CONTEXT), -1)


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1),
                           ignore_index=-1, reduction="sum"), (targets >= 0).sum()


def classified(name, config, t, model):
    """Classifies by the last token of each sample that is not padding."""
    fields = padded_batch()
    logits = model(input_ids=fields["tokens"]).logits
    if config["task"] == "multi-label":
        del fields["label"]
        loss, valid = scored(fields, logits, some_scores(True), True)
    else:
        loss, valid = cross_entropy(logits, fields["label"])
    t.dense(HEAD, "classes", model.score)
    finish(name, config, t, fields, logits, loss, valid)


def llama_classification():
    model = randomize(transformers.LlamaForSequenceClassification(
        llama_config(False, num_labels=3, pad_token_id=PADDING)))
    classified("llama_classification", llama_sizes("classification", False),
               llama_body(False, model), model)


def llama_token_classification():
    model = randomize(transformers.LlamaForTokenClassification(llama_config(False, num_labels=3)))
    fields = padded_batch()
    del fields["label"], fields["lengths"]
    fields["tags"] = tagged(torch.ones(SAMPLES, CONTEXT))
    logits = model(input_ids=fields["tokens"]).logits
    t = llama_body(False, model)
    t.dense(HEAD, "tags", model.score)
    finish("llama_token_classification", llama_sizes("token-classification", False), t, fields,
           logits, *cross_entropy(logits, fields["tags"]))


def gpt_classification(task="classification"):
    model = randomize(transformers.GPT2ForSequenceClassification(transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=CONTEXT,
        num_labels=3, pad_token_id=PADDING, attn_implementation="eager")))
    t, body = Tensors(), model.transformer
    t.plain("wte", body.wte.weight)
    t.plain("000.embedding/wpe", body.wpe.weight)

    def map_of(unit, name, layer):  # stored [in, out]
        t.plain(f"{unit}/{name}.weight", layer.weight)
        t.plain(f"{unit}/{name}.bias", layer.bias)

    for i, layer in enumerate(body.h):
        t.norm(unit(i, "attention"), layer.ln_1)
        map_of(unit(i, "attention"), "qkv", layer.attn.c_attn)
        map_of(unit(i, "attention"), "proj", layer.attn.c_proj)
        t.norm(unit(i, "mlp"), layer.ln_2)
        map_of(unit(i, "mlp"), "up", layer.mlp.c_fc)
        map_of(unit(i, "mlp"), "down", layer.mlp.c_proj)
    t.norm(HEAD, body.ln_f)
    classified("gpt_" + task.replace("-", "_"),
               SIZES | {"family": "gpt", "task": task, "options": {}}, t, model)


def bert_batch():
    lengths = torch.tensor([CONTEXT, 1, 6])
    mask = (torch.arange(CONTEXT) < lengths[:, None]).long()
    return {"tokens": integers(0, VOCAB, SAMPLES, CONTEXT),
            "types": integers(0, 3, SAMPLES, CONTEXT), "lengths": lengths}, mask


def bert(task):
    kind = {"masked-lm": transformers.BertForMaskedLM,
            "classification": transformers.BertForSequenceClassification,
            "regression": transformers.BertForSequenceClassification,
            "multi-label": transformers.BertForSequenceClassification,
            "token-classification": transformers.BertForTokenClassification,
            "question-answering": transformers.BertForQuestionAnswering}[task]
    model = randomize(kind(transformers.BertConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=40, max_position_embeddings=CONTEXT, type_vocab_size=3,
        num_labels=2 if task == "question-answering" else 3, layer_norm_eps=1e-12,
        pad_token_id=None,  # else the gradient of that token's embedding is omitted
        attn_implementation="eager")))
    fields, mask = bert_batch()
    out = model(input_ids=fields["tokens"], token_type_ids=fields["types"], attention_mask=mask)
    t, body = Tensors(), model.bert
    t.plain("wte", body.embeddings.word_embeddings.weight)
    t.plain("000.embedding/wpe", body.embeddings.position_embeddings.weight)
    t.plain("000.embedding/wtt", body.embeddings.token_type_embeddings.weight)
    t.norm("000.embedding", body.embeddings.LayerNorm)
    for i, layer in enumerate(body.encoder.layer):
        a = layer.attention
        t.norm(unit(i, "attention"), a.output.LayerNorm)
        t.dense(unit(i, "attention"), "qkv", a.self.query, a.self.key, a.self.value)
        t.dense(unit(i, "attention"), "proj", a.output.dense)
        t.norm(unit(i, "mlp"), layer.output.LayerNorm)
        t.dense(unit(i, "mlp"), "up", layer.intermediate.dense)
        t.dense(unit(i, "mlp"), "down", layer.output.dense)
    if task == "masked-lm":
        logits = out.logits
        targets = torch.where(mask.bool(), integers(-1, VOCAB, SAMPLES, CONTEXT), -1)
        fields["targets"] = targets
        valid = (targets >= 0).sum()
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=-1,
                               reduction="sum")
        head = model.cls.predictions
        t.dense(HEAD, "transform", head.transform.dense)
        t.norm(HEAD, head.transform.LayerNorm, "transform.ln")
        t.plain(f"{HEAD}/logits.bias", head.bias)
    elif task == "token-classification":
        logits, fields["tags"] = out.logits, tagged(mask)
        loss, valid = cross_entropy(logits, fields["tags"])
        t.dense(HEAD, "tags", model.classifier)
    elif task != "question-answering":
        logits = out.logits
        if task == "classification":
            fields["label"] = torch.tensor([2, -1, 0])
            loss, valid = cross_entropy(logits, fields["label"])
        else:
            binary = task == "multi-label"
            loss, valid = scored(fields, logits, some_scores(binary), binary)
        t.dense(HEAD, "pooler", body.pooler.dense)
        t.dense(HEAD, "classes", model.classifier)
    else:
        logits = torch.stack([out.start_logits, out.end_logits], -1)
        fields |= {"start": torch.tensor([3, 0, 5]), "end": torch.tensor([8, 0, 5])}
        valid = SAMPLES
        loss = (F.cross_entropy(out.start_logits, fields["start"], reduction="sum") +
                F.cross_entropy(out.end_logits, fields["end"], reduction="sum")) / 2
        t.dense(HEAD, "span", model.qa_outputs)
    config = SIZES | {"family": "bert", "task": task, "options": {"hidden": 40, "types": 3}}
    finish("bert_" + task.replace("-", "_"), config, t, fields, logits, loss, valid)


def vit():
    model = randomize(transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=40, image_size=12, patch_size=4, num_channels=3, num_labels=3,
        layer_norm_eps=1e-12, attn_implementation="eager")))
    image, label = torch.from_numpy(RANDOM.normal(size=(SAMPLES, 3, 12, 12))), integers(0, 3, SAMPLES)
    logits = model(pixel_values=image).logits
    loss = F.cross_entropy(logits, label, reduction="sum")
    t, body = Tensors(), model.vit
    patch = body.embeddings.patch_embeddings.projection
    t.getters["000.embedding/patch.weight"] = lambda of: of(patch.weight).reshape(WIDTH, -1).T
    t.plain("000.embedding/patch.bias", patch.bias)
    t.plain("000.embedding/cls", body.embeddings.cls_token)
    t.plain("000.embedding/wpe", body.embeddings.position_embeddings)
    parameters = dict(model.named_parameters())

    def of(prefix):
        class Layer:
            weight = parameters[prefix + ".weight"]
            bias = parameters.get(prefix + ".bias")
        return Layer

    names = {name.rsplit(".", 1)[0] for name in parameters}
    for i in range(LAYERS):
        def find(*endings):
            found = [n for n in names for e in endings
                     if n.endswith(e) and (f"layer.{i}." in n or f"layers.{i}." in n)]
            assert len(found) == 1, (endings, found, sorted(names))
            return of(found[0])
        t.norm(unit(i, "attention"), find("layernorm_before"))
        t.dense(unit(i, "attention"), "qkv", find("query", "q_proj"), find("key", "k_proj"),
                find("value", "v_proj"))
        t.dense(unit(i, "attention"), "proj", find("attention.output.dense", "o_proj"))
        t.norm(unit(i, "mlp"), find("layernorm_after"))
        t.dense(unit(i, "mlp"), "up", find("intermediate.dense", "fc1"))
        t.dense(unit(i, "mlp"), "down", find(f"{i}.output.dense", "fc2"))
    t.norm(HEAD, body.layernorm)
    t.dense(HEAD, "classes", model.classifier)
    config = SIZES | {"family": "vit", "task": "classification", "options": {
        "hidden": 40, "image": 12, "patch": 4, "channels": 3}}
    finish("vit", config, t, {"image": image, "label": label}, logits, loss, SAMPLES)


def next_tokens(name, config, t, model):
    """Predicts the next token at every position; a causal model whose head is in `t`."""
    tokens, targets = integers(0, VOCAB, SAMPLES, CONTEXT), integers(-1, VOCAB, SAMPLES, CONTEXT)
    logits = model(input_ids=tokens).logits
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=-1,
                           reduction="sum")
    finish(name, config | {"task": "causal-lm"}, t, {"tokens": tokens, "targets": targets}, logits,
           loss, (targets >= 0).sum())


def qwen3():
    """Norms per head, an unusual head size, all biases, scaled positions."""
    rope = dict(rope_type="llama3", rope_theta=1000.0, factor=8.0, low_freq_factor=1.0,
                high_freq_factor=4.0, original_max_position_embeddings=8)
    model = randomize(transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=2, head_dim=10, attention_bias=True,
        max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, rope_parameters=rope,
        tie_word_embeddings=False, attn_implementation="eager")))
    t = llama_body(False, model)
    for i, layer in enumerate(model.model.layers):
        t.norm(unit(i, "attention"), layer.self_attn.q_norm, "q_norm")
        t.norm(unit(i, "attention"), layer.self_attn.k_norm, "k_norm")
    t.dense(HEAD, "head", model.lm_head)
    options = llama_sizes("causal-lm", False)["options"] | {
        "head_dim": 10, "head_norms": True, "attention_bias": "all", "rope_scaling": "llama3",
        "rope_factor": 8.0, "rope_original": 8}
    next_tokens("qwen3", SIZES | {"family": "llama", "options": options}, t, model)


PARALLEL_HEAD = f"{LAYERS + 1:03d}.head"


def neox():
    heads = HEADS // 2  # 12 columns each, 6 of them rotated
    model = randomize(transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=LAYERS,
        num_attention_heads=heads, max_position_embeddings=CONTEXT, attn_implementation="eager",
        rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5))))
    t, body = Tensors(), model.gpt_neox
    t.plain("000.embedding/wte", body.embed_in.weight)
    for i, layer in enumerate(body.layers):
        name, qkv = f"{1 + i:03d}.layer", layer.attention.query_key_value
        def apart(x):  # transformers stores q, k and v per head
            return x.reshape(heads, 3, WIDTH // heads, -1).transpose(0, 1).reshape(3 * WIDTH, -1)
        t.norm(name, layer.input_layernorm)
        t.norm(name, layer.post_attention_layernorm, "mlp_ln")
        t.getters[f"{name}/qkv.weight"] = lambda of, w=qkv.weight: apart(of(w)).T
        t.getters[f"{name}/qkv.bias"] = lambda of, b=qkv.bias: apart(of(b)).reshape(-1)
        t.dense(name, "proj", layer.attention.dense)
        t.dense(name, "up", layer.mlp.dense_h_to_4h)
        t.dense(name, "down", layer.mlp.dense_4h_to_h)
    t.norm(PARALLEL_HEAD, body.final_layer_norm)
    t.dense(PARALLEL_HEAD, "head", model.embed_out if hasattr(model, "embed_out") else model.lm_head)
    next_tokens("neox", SIZES | {"family": "neox", "heads": heads, "options": {
        "hidden": 40, "rope_theta": 1000.0, "rope_share": 0.5}}, t, model)


def phi():
    model = randomize(transformers.PhiForCausalLM(transformers.PhiConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=CONTEXT, attn_implementation="eager",
        rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.7),
        hidden_act="silu")))
    t, body = Tensors(), model.model
    t.plain("000.embedding/wte", body.embed_tokens.weight)
    for i, layer in enumerate(body.layers):
        name, a = f"{1 + i:03d}.layer", layer.self_attn
        t.norm(name, layer.input_layernorm)
        t.dense(name, "qkv", a.q_proj, a.k_proj, a.v_proj)
        t.dense(name, "proj", a.dense)
        t.dense(name, "up", layer.mlp.fc1)
        t.dense(name, "down", layer.mlp.fc2)
    t.norm(PARALLEL_HEAD, body.final_layernorm)
    t.dense(PARALLEL_HEAD, "head", model.lm_head)
    next_tokens("phi", SIZES | {"family": "neox", "options": {
        "hidden": 40, "rope_theta": 1000.0, "rope_share": 0.7, "shared_norm": True,
        "head_bias": True, "activation": "silu"}}, t, model)


def distilbert():
    """No token types; ReLU in the MLPs and after the first row's linear map."""
    model = randomize(transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(
        vocab_size=VOCAB, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=40, num_labels=3,
        max_position_embeddings=CONTEXT, pad_token_id=None, activation="relu",
        attn_implementation="eager")))
    fields, mask = bert_batch()
    del fields["types"]
    fields["label"] = torch.tensor([2, -1, 0])
    logits = model(input_ids=fields["tokens"], attention_mask=mask).logits
    loss = F.cross_entropy(logits, fields["label"], ignore_index=-1, reduction="sum")
    t, body = Tensors(), model.distilbert
    t.plain("wte", body.embeddings.word_embeddings.weight)
    t.plain("000.embedding/wpe", body.embeddings.position_embeddings.weight)
    t.norm("000.embedding", body.embeddings.LayerNorm)
    for i, layer in enumerate(body.transformer.layer):
        a = layer.attention
        t.norm(unit(i, "attention"), layer.sa_layer_norm)
        t.dense(unit(i, "attention"), "qkv", a.q_lin, a.k_lin, a.v_lin)
        t.dense(unit(i, "attention"), "proj", a.out_lin)
        t.norm(unit(i, "mlp"), layer.output_layer_norm)
        t.dense(unit(i, "mlp"), "up", layer.ffn.lin1)
        t.dense(unit(i, "mlp"), "down", layer.ffn.lin2)
    t.dense(HEAD, "pooler", model.pre_classifier)
    t.dense(HEAD, "classes", model.classifier)
    finish("distilbert", SIZES | {"family": "bert", "task": "classification", "options": {
        "hidden": 40, "types": 0, "activation": "relu", "pooler": "relu"}}, t, fields, logits, loss, 2)


llama(tied=False)
llama(tied=True)
bert("masked-lm")
bert("classification")
bert("question-answering")
vit()
llama_classification()
gpt_classification()
qwen3()
neox()
phi()
distilbert()
for task in ("regression", "multi-label", "token-classification"):
    bert(task)
gpt_classification("multi-label")
llama_token_classification()
