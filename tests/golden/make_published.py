"""Makes published/: tiny models of every family and task as Hugging Face's transformers stores them,
for tests/integration/published_test.sh and tests/experiments/published_test.cc:
python3 make_published.py (torch 2.15, transformers 5.23).

Each folder has config.json, model.safetensors, and what the model makes of a batch: expected.json
with the inputs and the logits, in float32.
"""
import json
import os
import shutil

import torch
import transformers as t

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published")
VOCAB, WIDTH, HEADS, LAYERS, CONTEXT = 40, 16, 4, 2, 12
PADDING = VOCAB - 1  # by which transformers finds the last token of a causal model's sample
BERT = dict(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=24, max_position_embeddings=CONTEXT)
LLAMA = dict(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=CONTEXT,
             rms_norm_eps=1e-5)
MODELS = {
    "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=CONTEXT)),
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA)),
    "llama-tied": lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "bert-masked-lm": lambda: t.BertForMaskedLM(t.BertConfig(**BERT)),
    "bert-classification": lambda: t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=3)),
    "bert-question-answering": lambda: t.BertForQuestionAnswering(t.BertConfig(**BERT)),
    "bert": lambda: t.BertModel(t.BertConfig(**BERT)),
    "vit": lambda: t.ViTForImageClassification(t.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=24,
        image_size=8, patch_size=4, num_channels=3, num_labels=3)),
    "gpt2-classification": lambda: t.GPT2ForSequenceClassification(t.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=CONTEXT,
        num_labels=3, pad_token_id=PADDING)),
    "llama-classification": lambda: t.LlamaForSequenceClassification(
        t.LlamaConfig(**LLAMA, num_labels=3, pad_token_id=PADDING)),
}


def batch_of(name):
    if name == "vit":
        return {"pixel_values": torch.randn(3, 3, 8, 8)}
    tokens = torch.randint(VOCAB, (3, CONTEXT))
    lengths = torch.tensor([CONTEXT, 1, 7])
    if name in ("gpt2-classification", "llama-classification"):
        mask = torch.arange(CONTEXT) < lengths[:, None]
        return {"input_ids": torch.where(mask, tokens % PADDING, PADDING),
                "attention_mask": mask.long()}
    if not name.startswith("bert"):
        return {"input_ids": tokens}
    return {"input_ids": tokens, "token_type_ids": torch.randint(2, (3, CONTEXT)),
            "attention_mask": (torch.arange(CONTEXT) < lengths[:, None]).long()}


def main():
    torch.manual_seed(11)
    shutil.rmtree(HERE, ignore_errors=True)
    for name, make in MODELS.items():
        model = make().eval()
        for parameter, weight in model.named_parameters():
            with torch.no_grad():
                near = 1 if "norm" in parameter.lower() and parameter.endswith("weight") else 0
                weight.normal_(near, 0.2)
        folder = os.path.join(HERE, name)
        model.save_pretrained(folder)
        batch = batch_of(name)
        with torch.no_grad():
            out = model(**batch)
        if name == "bert-question-answering":
            logits = torch.stack([out.start_logits, out.end_logits], -1)
        else:
            logits = out.last_hidden_state if name == "bert" else out.logits
        expected = {key: value.flatten().tolist() for key, value in batch.items()}
        expected["logits"] = logits.flatten().tolist()
        with open(os.path.join(folder, "expected.json"), "w") as file:
            json.dump(expected, file)
        print(name, sorted(os.listdir(folder)), os.path.getsize(folder + "/model.safetensors"))


main()
