"""Checkpoints of the Hugging Face hub as published, with smaller sizes: the keys of config.json and
the names of their tensors. This works without access to the hub.

A row: name on the hub -> (transformers' class, config.json with the original's sizes, and how the
file's tensors differ from what transformers writes today). `tests/integration/hub_test.py` creates
each model with random weights, imports it, and compares logits.
"""

# A config.json of each kind, with smaller sizes: hub checkpoints differ from these in nothing else.
GPT2 = {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 32, "n_embd": 24, "n_head": 4,
        "n_layer": 2, "n_positions": 32, "resid_pdrop": 0.1, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        "vocab_size": 300}
LLAMA = {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
         "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 32,
         "initializer_range": 0.02, "intermediate_size": 48, "max_position_embeddings": 32,
         "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
         "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None,
         "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
         "transformers_version": "4.35.0", "use_cache": True, "vocab_size": 300}
BERT = {"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
        "gradient_checkpointing": False, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": 24, "initializer_range": 0.02, "intermediate_size": 40, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 32, "model_type": "bert", "num_attention_heads": 4,
        "num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "absolute",
        "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": True,
        "vocab_size": 300}
POOLER = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
          "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform"}
ROBERTA = {"architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1,
           "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
           "hidden_size": 24, "initializer_range": 0.02, "intermediate_size": 40,
           "layer_norm_eps": 1e-05, "max_position_embeddings": 34, "model_type": "roberta",
           "num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 1, "type_vocab_size": 1,
           "vocab_size": 300}
DISTILBERT = {"activation": "gelu", "architectures": ["DistilBertForMaskedLM"],
              "attention_dropout": 0.1, "dim": 24, "dropout": 0.1, "hidden_dim": 40,
              "initializer_range": 0.02, "max_position_embeddings": 32, "model_type": "distilbert",
              "n_heads": 4, "n_layers": 2, "pad_token_id": 0, "qa_dropout": 0.1,
              "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True,
              "transformers_version": "4.10.0.dev0", "vocab_size": 300}
ELECTRA = {"architectures": ["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1,
           "embedding_size": 24, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 24,
           "initializer_range": 0.02, "intermediate_size": 40, "layer_norm_eps": 1e-12,
           "max_position_embeddings": 32, "model_type": "electra", "num_attention_heads": 4,
           "num_hidden_layers": 2, "pad_token_id": 0, "summary_activation": "gelu",
           "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": True,
           "type_vocab_size": 2, "vocab_size": 300}
OPT = {"_name_or_path": "opt-125m", "_remove_final_layer_norm": False, "activation_dropout": 0.0,
       "activation_function": "relu", "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0,
       "bos_token_id": 2, "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2,
       "ffn_dim": 40, "hidden_size": 24, "init_std": 0.02, "layerdrop": 0.0,
       "max_position_embeddings": 32, "model_type": "opt", "num_attention_heads": 4,
       "num_hidden_layers": 2, "pad_token_id": 1, "prefix": "</s>", "torch_dtype": "float16",
       "transformers_version": "4.21.0.dev0", "use_cache": True, "vocab_size": 300,
       "word_embed_proj_dim": 24}
NEOX = {"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
        "hidden_act": "gelu", "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 48,
        "layer_norm_eps": 1e-05, "max_position_embeddings": 32, "model_type": "gpt_neox",
        "num_attention_heads": 4, "num_hidden_layers": 2, "rotary_emb_base": 10000,
        "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
        "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True,
        "vocab_size": 300}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
         "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.02,
         "intermediate_size": 48, "max_position_embeddings": 32, "max_window_layers": 24,
         "model_type": "qwen2", "num_attention_heads": 4, "num_hidden_layers": 2,
         "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
         "sliding_window": 32, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
         "transformers_version": "4.40.1", "use_cache": True, "use_sliding_window": False,
         "vocab_size": 300}
QWEN3 = {**{k: v for k, v in QWEN2.items()}, "architectures": ["Qwen3ForCausalLM"],
         "attention_bias": False, "head_dim": 16, "max_window_layers": 28, "model_type": "qwen3",
         "rope_scaling": None, "sliding_window": None, "transformers_version": "4.51.0"}
MISTRAL = {"architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
           "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.02,
           "intermediate_size": 48, "max_position_embeddings": 32, "model_type": "mistral",
           "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
           "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 32,
           "tie_word_embeddings": False, "torch_dtype": "bfloat16",
           "transformers_version": "4.34.0.dev0", "use_cache": True, "vocab_size": 300}
PHI = {"architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": None,
       "embd_pdrop": 0.0, "eos_token_id": None, "hidden_act": "gelu_new", "hidden_size": 32,
       "initializer_range": 0.02, "intermediate_size": 48, "layer_norm_eps": 1e-05,
       "max_position_embeddings": 32, "model_type": "phi", "num_attention_heads": 4,
       "num_hidden_layers": 2, "num_key_value_heads": None, "partial_rotary_factor": 0.5,
       "qk_layernorm": False, "resid_pdrop": 0.0, "rope_scaling": None, "rope_theta": 10000.0,
       "tie_word_embeddings": False, "torch_dtype": "float16", "transformers_version": "4.37.0",
       "use_cache": True, "vocab_size": 300}
PHI3 = {"_name_or_path": "Phi-3-mini-4k-instruct", "architectures": ["Phi3ForCausalLM"],
        "attention_bias": False, "attention_dropout": 0.0,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 1,
        "embd_pdrop": 0.0, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 32,
        "initializer_range": 0.02, "intermediate_size": 48, "max_position_embeddings": 32,
        "model_type": "phi3", "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 4, "original_max_position_embeddings": 32, "pad_token_id": 2,
        "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
        "sliding_window": 32, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.40.2", "use_cache": True, "vocab_size": 300}
VIT = {"_name_or_path": "google/vit-base-patch16-224-in21k",
       "architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
       "encoder_stride": 8, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 24,
       "id2label": {str(i): f"tench {i}" for i in range(10)}, "image_size": 32,
       "initializer_range": 0.02, "intermediate_size": 40,
       "label2id": {f"tench {i}": i for i in range(10)}, "layer_norm_eps": 1e-12, "model_type": "vit",
       "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2, "patch_size": 8,
       "qkv_bias": True, "torch_dtype": "float32", "transformers_version": "4.13.0.dev0"}


def labels(*names):
    return {"id2label": {str(i): n for i, n in enumerate(names)},
            "label2id": {n: i for i, n in enumerate(names)}}


def classes(base, architecture, *names, **more):
    return {**base, "architectures": [architecture], **labels(*names), **more}


LLAMA3_ROPE = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
               "original_max_position_embeddings": 8, "rope_type": "llama3"}
SENTENCE = {**BERT, "architectures": ["BertModel"]}

# How tensors differ from what transformers writes today: `old` (gamma and beta), `positions`
# (embeddings.position_ids as integers), `mask` (GPT-2's attn.bias), `bare` (without the name of the
# body), `next` (the head for next sentence prediction), `frequencies` (rotary_emb.inv_freq),
# `pooler` (in the body, if the head has none), `bool mask`.
# Checkpoints that users of this project tried to import in November 2026:
TRIED = {
    "openai-community/gpt2": ({**GPT2}, "bare mask"),
    "distilbert/distilgpt2": ({**GPT2, "_num_labels": 1, **labels("LABEL_0")}, "mask"),
    "microsoft/DialoGPT-small": (
        {**GPT2, "task_specific_params": {"conversational": {"max_length": 1000}}}, "mask"),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": ({**LLAMA}, ""),
    "meta-llama/Meta-Llama-3-8B": ({**LLAMA, "rope_theta": 500000.0}, ""),
    "meta-llama/Llama-3.2-1B": (
        {**LLAMA, "head_dim": 16, "mlp_bias": False, "rope_scaling": LLAMA3_ROPE,
         "rope_theta": 500000.0, "tie_word_embeddings": True}, ""),
    "HuggingFaceTB/SmolLM2-135M": (
        {**LLAMA, "is_llama_config": True, "rope_interleaved": False, "rope_theta": 100000,
         "tie_word_embeddings": True}, ""),
    "google-bert/bert-base-uncased": ({**BERT}, "old next"),
    "google-bert/bert-base-cased": ({**BERT, **POOLER}, "old next"),
    "google-bert/bert-base-chinese": ({**BERT, **POOLER}, "old next"),
    "prajjwal1/bert-tiny": ({key: BERT[key] for key in (
        "hidden_size", "hidden_act", "initializer_range", "vocab_size", "hidden_dropout_prob",
        "num_attention_heads", "type_vocab_size", "max_position_embeddings", "num_hidden_layers",
        "intermediate_size", "attention_probs_dropout_prob")}, "next"),
    "google/bert_uncased_L-2_H-128_A-2": (
        {key: value for key, value in BERT.items() if key != "architectures"}, "next"),
    "sentence-transformers/all-MiniLM-L6-v2": (SENTENCE, "positions bare"),
    "BAAI/bge-small-en-v1.5": ({**SENTENCE, **labels("LABEL_0")}, "positions bare"),
    "ProsusAI/finbert": (
        classes(BERT, "BertForSequenceClassification", "positive", "negative", "neutral"), "positions"),
    "nlptown/bert-base-multilingual-uncased-sentiment": (
        classes({**BERT, **POOLER}, "BertForSequenceClassification", "1 star", "2 stars", "3 stars",
                "4 stars", "5 stars", _num_labels=5, finetuning_task="sentiment-analysis",
                output_past=True), "positions"),
    "cross-encoder/ms-marco-MiniLM-L6-v2": (
        classes(BERT, "BertForSequenceClassification", "LABEL_0", sentence_transformers={
            "activation_fn": "torch.nn.modules.linear.Identity", "version": "4.0.1"}), "positions"),
    "dslim/bert-base-NER": (
        classes({**BERT, **POOLER}, "BertForTokenClassification", "O", "B-MISC", "I-MISC", "B-PER",
                "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", _num_labels=9, output_past=True), ""),
    "google/vit-base-patch16-224": ({**VIT}, ""),
    "facebook/deit-tiny-patch16-224": ({**VIT}, ""),
}
# Other checkpoints, many of them among the most downloaded of their kind:
MORE = {
    "openai-community/gpt2-large": (
        {**GPT2, "n_special": 0, "predict_special_tokens": True}, "bare mask"),
    "microsoft/DialoGPT-medium": ({**GPT2}, "bool mask"),
    "facebook/opt-125m": ({**OPT}, ""),
    "facebook/opt-1.3b": ({**OPT, "_name_or_path": "opt-1.3b"}, ""),
    "facebook/opt-350m": ({**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 12}, ""),
    "EleutherAI/pythia-70m": ({**NEOX}, "frequencies"),
    "EleutherAI/pythia-410m-deduped": ({**NEOX}, "frequencies"),
    "EleutherAI/gpt-neox-20b": (
        {**NEOX, "attention_probs_dropout_prob": 0, "hidden_act": "gelu_fast",
         "hidden_dropout_prob": 0}, ""),
    "meta-llama/Llama-2-7b-hf": ({**LLAMA, "num_key_value_heads": 4}, "frequencies"),
    "meta-llama/Llama-3.1-8B": (
        {**LLAMA, "mlp_bias": False, "rope_theta": 500000.0,
         "rope_scaling": {**LLAMA3_ROPE, "factor": 8.0}, "eos_token_id": [128001, 128008]}, ""),
    "HuggingFaceTB/SmolLM-135M": (
        {**LLAMA, "rope_theta": 10000.0, "tie_word_embeddings": True}, ""),
    "HuggingFaceTB/SmolLM2-360M-Instruct": (
        {**LLAMA, "is_llama_config": True, "rope_interleaved": False, "rope_theta": 100000,
         "tie_word_embeddings": True,
         "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}}, ""),
    "01-ai/Yi-6B": ({**LLAMA, "rope_theta": 5000000.0, "pad_token_id": 0}, ""),
    "deepseek-ai/deepseek-coder-1.3b-base": (
        {**LLAMA, "rope_scaling": {"factor": 4.0, "type": "linear"}, "rope_theta": 100000}, ""),
    "mistralai/Mistral-7B-v0.1": ({**MISTRAL}, ""),
    "mistralai/Mistral-7B-v0.3": (
        {**MISTRAL, "rope_theta": 1000000.0, "sliding_window": None, "attention_dropout": 0.0}, ""),
    "mistralai/Mistral-Nemo-Base-2407": (
        {**MISTRAL, "head_dim": 6, "rope_theta": 1000000.0, "sliding_window": None,
         "attention_dropout": 0.0}, ""),
    "Qwen/Qwen2-0.5B": ({**QWEN2}, ""),
    "Qwen/Qwen2.5-0.5B-Instruct": ({**QWEN2, "max_window_layers": 21}, ""),
    "Qwen/Qwen2.5-7B": ({**QWEN2, "tie_word_embeddings": False, "use_mrope": False}, ""),
    "Qwen/Qwen3-0.6B": ({**QWEN3}, ""),
    "Qwen/Qwen3-8B": ({**QWEN3, "tie_word_embeddings": False}, ""),
    "microsoft/phi-1_5": ({**PHI}, ""),
    "microsoft/phi-2": ({**PHI, "partial_rotary_factor": 0.4, "hidden_size": 40}, ""),
    "microsoft/Phi-3-mini-4k-instruct": ({**PHI3}, ""),
    "microsoft/Phi-3-mini-128k-instruct": (
        {**PHI3, "rope_scaling": {"long_factor": [1.0] * 4, "short_factor": [1.0] * 4,
                                  "type": "longrope"}}, ""),
    "google-bert/bert-base-multilingual-cased": ({**BERT, **POOLER}, "old next"),
    "google-bert/bert-large-uncased-whole-word-masking-finetuned-squad": (
        {**BERT, "architectures": ["BertForQuestionAnswering"]}, "positions"),
    "emilyalsentzer/Bio_ClinicalBERT": (
        {key: value for key, value in BERT.items() if key != "architectures"}, "next"),
    "intfloat/e5-small-v2": ({**SENTENCE, "classifier_dropout": None}, "positions bare"),
    "thenlper/gte-small": ({**SENTENCE}, "positions bare"),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": ({**SENTENCE}, "positions bare"),
    "FacebookAI/roberta-base": ({**ROBERTA}, "positions pooler"),
    "FacebookAI/roberta-large": ({**ROBERTA}, "positions pooler"),
    "distilbert/distilroberta-base": ({**ROBERTA}, "positions pooler"),
    "FacebookAI/xlm-roberta-base": (
        {**ROBERTA, "architectures": ["XLMRobertaForMaskedLM"], "model_type": "xlm-roberta",
         "output_past": True, "position_embedding_type": "absolute", "use_cache": True}, "positions pooler"),
    "almanach/camembert-base": (
        {**ROBERTA, "architectures": ["CamembertForMaskedLM"], "bos_token_id": 5, "eos_token_id": 6,
         "model_type": "camembert", "output_past": True}, "positions pooler"),
    "cardiffnlp/twitter-roberta-base-sentiment-latest": (
        classes(ROBERTA, "RobertaForSequenceClassification", "negative", "neutral", "positive",
                gradient_checkpointing=False, classifier_dropout=None), "positions pooler"),
    "deepset/roberta-base-squad2": (
        {**ROBERTA, "architectures": ["RobertaForQuestionAnswering"], "language": "english",
         "name": "Roberta"}, "positions pooler"),
    "distilbert/distilbert-base-uncased": ({**DISTILBERT}, ""),
    "distilbert/distilbert-base-uncased-finetuned-sst-2-english": (
        classes(DISTILBERT, "DistilBertForSequenceClassification", "NEGATIVE", "POSITIVE",
                finetuning_task="sst-2", output_past=True), ""),
    "distilbert/distilbert-base-cased-distilled-squad": (
        {**DISTILBERT, "architectures": ["DistilBertForQuestionAnswering"], "output_past": True}, ""),
    "google/electra-base-discriminator": ({**ELECTRA}, "positions"),
    "google/electra-small-discriminator": ({**ELECTRA, "embedding_size": 12}, "positions"),
    "google/vit-base-patch16-224-in21k": (
        {**{k: v for k, v in VIT.items() if k not in ("id2label", "label2id")},
         "architectures": ["ViTModel"]}, "bare"),
    "google/vit-large-patch16-224": ({**VIT}, ""),
    "nateraw/vit-age-classifier": ({**VIT, "problem_type": "single_label_classification"}, ""),
    "Falconsai/nsfw_image_detection": (
        classes(VIT, "ViTForImageClassification", "normal", "nsfw"), ""),
}
# Rejected checkpoints, and the words that say why.
REFUSED = {
    "facebook/opt-350m": "do_layer_norm_before = false is not supported",
    "microsoft/Phi-3-mini-128k-instruct": "longrope",
    "google/electra-small-discriminator": "embedding_size is 12",
}
# One of each type, and some rare forms, to be trained for each task that the type supports.
TUNED = {
    "bert": BERT, "roberta": ROBERTA, "roberta, padding 0": {**ROBERTA, "max_position_embeddings": 33,
                                                             "pad_token_id": 0},
    "camembert": {**ROBERTA, "architectures": ["CamembertForMaskedLM"], "model_type": "camembert"},
    "xlm-roberta": {**ROBERTA, "architectures": ["XLMRobertaForMaskedLM"], "model_type": "xlm-roberta"},
    "distilbert": DISTILBERT, "electra": ELECTRA, "gpt2": GPT2, "opt": OPT, "gpt_neox": NEOX, "llama": LLAMA,
    "llama, tied": {**LLAMA, "tie_word_embeddings": True}, "mistral": MISTRAL, "phi": PHI, "phi3": PHI3,
    "qwen2": {**QWEN2, "tie_word_embeddings": False}, "qwen3": {**QWEN3, "tie_word_embeddings": False},
}
