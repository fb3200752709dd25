#include "experiments/hugging_face/harmless_keys.h"

namespace concertina {
namespace {

constexpr std::string_view kAbout = "says where the file is from",
                           kMarks = "tokens, of which the tokenizer says more",
                           kStorage = "how weights are stored, which their files say",
                           kOutput = "what transformers' classes return",
                           kLoading = "how transformers loads or runs it",
                           kInit = "of weights that are drawn anew",
                           kGeneration = "of sampling text", kTraining = "of training",
                           kLabels = "names of classes", kOwnRule = "read where it is of use",
                           kOther = "of another library";

constexpr HarmlessKey kKeys[] = {
    {"architectures", kOwnRule},
    {"model_type", kOwnRule},
    {"num_labels", kOwnRule},
    {"problem_type", kOwnRule},
    {"is_decoder", kOwnRule},
    {"add_cross_attention", kOwnRule},
    {"tie_word_embeddings", kOwnRule},
    {"_name_or_path", kAbout},
    {"_commit_hash", kAbout},
    {"transformers_version", kAbout},
    {"tokenizer_class", kAbout},
    {"finetuning_task", kAbout},
    {"language", kAbout},
    {"name", kAbout},
    {"auto_map", "code of the folder's own, which is never run"},
    {"bos_token_id", kMarks},
    {"eos_token_id", kMarks},
    {"pad_token_id", kMarks},
    {"sep_token_id", kMarks},
    {"cls_token_id", kMarks},
    {"mask_token_id", kMarks},
    {"decoder_start_token_id", kMarks},
    {"torch_dtype", kStorage},
    {"dtype", kStorage},
    {"use_bfloat16", kStorage},
    {"return_dict", kOutput},
    {"output_attentions", kOutput},
    {"output_hidden_states", kOutput},
    {"output_past", kOutput},
    {"use_cache", kOutput},
    {"torchscript", kLoading},
    {"_attn_implementation", kLoading},
    {"_attn_implementation_autoset", kLoading},
    {"chunk_size_feed_forward", kLoading},
    {"use_return_dict", kLoading},
    {"is_encoder_decoder", kLoading},
    {"tf_legacy_loss", kLoading},
    {"xla_device", kLoading},
    {"pruned_heads", "of heads that the weights do not have: their shapes would say so"},
    {"initializer_range", kInit},
    {"initializer_factor", kInit},
    {"gradient_checkpointing", kTraining},
    {"classifier_dropout", kTraining},
    {"_num_labels", kLabels},
    {"id2label", kLabels},
    {"label2id", kLabels},
    {"task_specific_params", kGeneration},
    {"max_length", kGeneration},
    {"min_length", kGeneration},
    {"do_sample", kGeneration},
    {"num_beams", kGeneration},
    {"temperature", kGeneration},
    {"top_k", kGeneration},
    {"top_p", kGeneration},
    {"repetition_penalty", kGeneration},
    {"length_penalty", kGeneration},
    {"sentence_transformers", kOther},
    {"transformers.js_config", kOther},
    {"custom_pipelines", kOther}};

}  // namespace

std::span<const HarmlessKey> harmless_keys() {
  return kKeys;
}

}  // namespace concertina
