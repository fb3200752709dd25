#include "experiments/hugging_face/published_config.h"

#include <algorithm>
#include <array>

namespace concertina {
namespace {

/// Keys and why they change no figure.
struct Harmless {
  std::string_view why;
  std::array<std::string_view, 15> keys;
};

constexpr Harmless kHarmless[] = {
    {"read where it is of use",
     {"architectures", "model_type", "num_labels", "problem_type", "is_decoder",
      "add_cross_attention", "tie_word_embeddings"}},
    {"says where the file is from",
     {"_name_or_path", "_commit_hash", "transformers_version", "tokenizer_class", "finetuning_task",
      "language", "name"}},
    {"code of the folder's own, which is never run", {"auto_map"}},
    {"tokens, of which the tokenizer says more",
     {"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id",
      "mask_token_id", "eos_token_ids", "prefix", "decoder_start_token_id"}},
    {"how weights are stored, which their files say", {"torch_dtype", "dtype", "use_bfloat16"}},
    {"what transformers' classes return",
     {"return_dict", "output_attentions", "output_hidden_states", "output_past", "use_cache",
      "output_scores", "return_dict_in_generate"}},
    {"how transformers loads or runs it",
     {"torchscript", "_attn_implementation", "_attn_implementation_autoset",
      "chunk_size_feed_forward", "use_return_dict", "is_encoder_decoder", "tie_encoder_decoder",
      "cross_attention_hidden_size", "tf_legacy_loss", "xla_device"}},
    {"of heads that the weights do not have: their shapes would say so", {"pruned_heads"}},
    {"of weights that are drawn anew", {"initializer_range", "initializer_factor"}},
    {"of training",
     {"gradient_checkpointing", "training", "pre_trained", "num_steps", "max_sequence_length"}},
    {"names of classes", {"_num_labels", "id2label", "label2id"}},
    {"of sampling text: how far, and by which search",
     {"task_specific_params", "max_length", "min_length", "do_sample", "num_beams",
      "num_beam_groups", "num_return_sequences", "early_stopping", "remove_invalid_values"}},
    {"of sampling text: which token is next",
     {"temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
      "diversity_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
      "forced_bos_token_id", "forced_eos_token_id"}},
    {"of another library",
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
