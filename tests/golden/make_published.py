"""Makes published/: tiny models of every family and task as stored by Hugging Face's transformers,
for tests/integration/published_test.sh and tests/experiments/published_test.cc:
python3 make_published.py [NAME...] (torch 2.15, transformers 5.23 and 5.24).

Each folder has config.json, model.safetensors, and expected.json with a batch of inputs and the
model's logits, in float32. peft/ has adapters of some of them (peft 0.21), with the logits of the adapted model.
"""
import json
import os
import shutil
import sys

import peft
import torch
import transformers as t

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published")
VOCAB, WIDTH, HEADS, LAYERS, CONTEXT = 40, 16, 4, 2, 12
PADDING = VOCAB - 1  # marks the end of a sample for transformers' causal models
BERT = dict(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=24, max_position_embeddings=CONTEXT)
LLAMA = dict(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=CONTEXT,
             rms_norm_eps=1e-5)
ROBERTA = dict(BERT, max_position_embeddings=CONTEXT + 2, type_vocab_size=1, pad_token_id=1)
DISTILBERT = dict(vocab_size=VOCAB, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=24,
                  max_position_embeddings=CONTEXT)
ROPE_LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=8.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=8)
ROPE_YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=8)
NEOX = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=32, num_hidden_layers=LAYERS,
            num_attention_heads=3, max_position_embeddings=CONTEXT)
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
    "bert-regression": lambda: t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=1)),
    "bert-multi-label": lambda: t.BertForSequenceClassification(t.BertConfig(
        **BERT, num_labels=3, problem_type="multi_label_classification")),
    "bert-token-classification": lambda: t.BertForTokenClassification(t.BertConfig(
        **BERT, id2label=dict(enumerate(["O", "B-PER", "I-PER"])))),
    "llama-token-classification": lambda: t.LlamaForTokenClassification(
        t.LlamaConfig(**LLAMA, num_labels=3)),
    "gpt2-classification": lambda: t.GPT2ForSequenceClassification(t.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=CONTEXT,
        num_labels=3, pad_token_id=PADDING)),
    "llama-classification": lambda: t.LlamaForSequenceClassification(
        t.LlamaConfig(**LLAMA, num_labels=3, pad_token_id=PADDING)),
    "gpt2-relu": lambda: t.GPT2LMHeadModel(t.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=CONTEXT, n_inner=24,
        activation_function="relu", layer_norm_epsilon=1e-6)),
    "opt": lambda: t.OPTForCausalLM(t.OPTConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=24,
        max_position_embeddings=CONTEXT, word_embed_proj_dim=WIDTH)),
    "llama3": lambda: t.LlamaForCausalLM(t.LlamaConfig(
        **LLAMA, attention_bias=True, rope_parameters=ROPE_LLAMA3)),
    "llama-yarn": lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, head_dim=8, rope_parameters=ROPE_YARN)),
    "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**LLAMA, sliding_window=CONTEXT)),
    "qwen2": lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**LLAMA)),
    "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**LLAMA, head_dim=6, tie_word_embeddings=True)),
    "phi3": lambda: t.Phi3ForCausalLM(t.Phi3Config(**LLAMA, sliding_window=CONTEXT, pad_token_id=None)),
    "gpt-neox": lambda: t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**NEOX)),
    "phi": lambda: t.PhiForCausalLM(t.PhiConfig(**NEOX)),
    "roberta-masked-lm": lambda: t.RobertaForMaskedLM(t.RobertaConfig(**ROBERTA)),
    "roberta-classification": lambda: t.RobertaForSequenceClassification(
        t.RobertaConfig(**ROBERTA, num_labels=3)),
    "distilbert-masked-lm": lambda: t.DistilBertForMaskedLM(t.DistilBertConfig(**DISTILBERT)),
    "distilbert-classification": lambda: t.DistilBertForSequenceClassification(
        t.DistilBertConfig(**DISTILBERT, num_labels=3)),
    "electra-classification": lambda: t.ElectraForSequenceClassification(t.ElectraConfig(
        **BERT, embedding_size=WIDTH, num_labels=3)),
    "vit-odd": lambda: t.ViTForImageClassification(t.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=24,
        image_size=8, patch_size=4, num_channels=3, num_labels=3, qkv_bias=False, hidden_act="relu")),
}


ADAPTERS = {
    "gpt2": dict(r=3, lora_alpha=5, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True),
    "llama": dict(r=2, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj", "gate_proj"], use_rslora=True),
    "bert-classification": dict(r=2, lora_alpha=4, target_modules=["query", "value"], task_type="SEQ_CLS"),
}


def batch_of(name):
    if name.startswith("vit"):
        return {"pixel_values": torch.randn(3, 3, 8, 8)}
    tokens = torch.randint(VOCAB, (3, CONTEXT))
    lengths = torch.tensor([CONTEXT, 1, 7])
    if name in ("gpt2-classification", "llama-classification"):
        mask = torch.arange(CONTEXT) < lengths[:, None]
        return {"input_ids": torch.where(mask, tokens % PADDING, PADDING),
                "attention_mask": mask.long()}
    mask = (torch.arange(CONTEXT) < lengths[:, None]).long()
    if name.startswith("roberta"):  # its positions count tokens other than padding
        return {"input_ids": torch.where(mask > 0, 2 + tokens % (VOCAB - 2), 1), "attention_mask": mask}
    if name.startswith("distilbert"):
        return {"input_ids": tokens, "attention_mask": mask}
    if not name.startswith(("bert", "electra")):
        return {"input_ids": tokens}
    return {"input_ids": tokens, "token_type_ids": torch.randint(2, (3, CONTEXT)), "attention_mask": mask}


def logits_of(model, name, batch):
    with torch.no_grad():
        out = model(**batch)
    if name == "bert-question-answering":
        return torch.stack([out.start_logits, out.end_logits], -1)
    return out.last_hidden_state if name == "bert" else out.logits


def write_expected(folder, model, name):
    batch = batch_of(name)
    expected = {key: value.flatten().tolist() for key, value in batch.items()}
    expected["logits"] = logits_of(model, name, batch).flatten().tolist()
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file)


def make_adapters():
    torch.manual_seed(12)
    for name, options in ADAPTERS.items():
        folder = os.path.join(os.path.dirname(HERE), "peft", name)
        shutil.rmtree(folder, ignore_errors=True)
        model = peft.get_peft_model(type(MODELS[name]()).from_pretrained(os.path.join(HERE, name)), peft.LoraConfig(**options)).eval()
        for parameter, weight in model.named_parameters():
            if weight.requires_grad:
                with torch.no_grad():
                    weight.normal_(0, 0.2)
        model.peft_config["default"].base_model_name_or_path = f"../../published/{name}"
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "README.md"))
        write_expected(folder, model, name)
        print(name, sorted(os.listdir(folder)))


def main():
    torch.manual_seed(11)
    wanted = sys.argv[1:] or list(MODELS)
    if wanted == ["peft"]:
        return make_adapters()
    for name in wanted:
        make = MODELS[name]
        shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
        model = make().eval()
        for parameter, weight in model.named_parameters():
            with torch.no_grad():
                near = 1 if "norm" in parameter.lower() and parameter.endswith("weight") else 0
                weight.normal_(near, 0.2)
                if "position" in parameter and name.startswith(("roberta", "opt")):
                    weight[:2] = 0  # used by no sample, and not saved
        folder = os.path.join(HERE, name)
        model.save_pretrained(folder)
        generation = os.path.join(folder, "generation_config.json")
        if os.path.exists(generation):
            os.remove(generation)
        write_expected(folder, model, name)
        print(name, sorted(os.listdir(folder)), os.path.getsize(folder + "/model.safetensors"))
    if not sys.argv[1:]:
        make_adapters()


main()
