#include "experiments/hugging_face/published_config.h"

#include <algorithm>
#include <array>

namespace concertina {
namespace {

/// Keys that do not affect results, and why.
struct Harmless {
  std::string_view why;
  std::array<std::string_view, 15> keys;
};

constexpr Harmless kHarmless[] = {
    {"read where they are needed",
     {"architectures", "model_type", "num_labels", "problem_type", "is_decoder",
      "add_cross_attention", "tie_word_embeddings"}},
    {"origin of the file",
     {"_name_or_path", "_commit_hash", "transformers_version", "tokenizer_class", "finetuning_task",
      "language", "name"}},
    {"code in the folder, which is never run", {"auto_map"}},
    {"special tokens, which the tokenizer defines",
     {"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id",
      "mask_token_id", "eos_token_ids", "prefix", "decoder_start_token_id"}},
    {"storage type, which the files specify", {"torch_dtype", "dtype", "use_bfloat16"}},
    {"return values of transformers' classes",
     {"return_dict", "output_attentions", "output_hidden_states", "output_past", "use_cache",
      "output_scores", "return_dict_in_generate"}},
    {"how transformers loads or runs the model",
     {"torchscript", "_attn_implementation", "_attn_implementation_autoset",
      "chunk_size_feed_forward", "use_return_dict", "is_encoder_decoder", "tie_encoder_decoder",
      "cross_attention_hidden_size", "tf_legacy_loss", "xla_device"}},
    {"pruned heads, which would change the shapes of the weights", {"pruned_heads"}},
    {"initialization of new weights", {"initializer_range", "initializer_factor"}},
    {"training",
     {"gradient_checkpointing", "training", "pre_trained", "num_steps", "max_sequence_length"}},
    {"names of classes", {"_num_labels", "id2label", "label2id"}},
    {"text generation: length and search",
     {"task_specific_params", "max_length", "min_length", "do_sample", "num_beams",
      "num_beam_groups", "num_return_sequences", "early_stopping", "remove_invalid_values"}},
    {"text generation: choice of the next token",
     {"temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
      "diversity_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
      "forced_bos_token_id", "forced_eos_token_id"}},
    {"other libraries",
     {"sentence_transformers", "transformers.js_config", "custom_pipelines", "emb_size", "cell",
      "structure", "learned_embeddings"}}};

}  // namespace

bool is_harmless(std::string_view key) {
  return std::ranges::any_of(kHarmless, [&](const Harmless& group) {
    return std::ranges::any_of(group.keys, [&](std::string_view one) {
      return !one.empty() && (key == one || (key.starts_with(one) && key[one.size()] == '.'));
    });
  });
}

}  // namespace concertina
