#include "experiments/config/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/backend.h"
#include "core/cpu/isa.h"
#include "core/cuda/backend.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/schedule_file.h"
#include "io/datasets/dataset.h"
#include "models/lr_schedule.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/task.h"
#include "parallel/comm/tensor_communicator.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/exchange_scheme.h"
#include "parallel/plan/partition.h"
#include "parallel/repartition/layout_policy.h"

namespace concertina {
namespace {

#define KEY(path) #path, [](RunConfig & c) -> KeyField { return &c.path; }

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Range kCount{1, 1 << 20};  // sizes and numbers of things
constexpr Range kIndex{0, 1 << 20};  // 0 = "off" or "follows from the rest"
constexpr Range kSteps{0, 1e15};
constexpr Range kPositive{0, kInf, true};
constexpr Range kNotNegative{0, kInf};
constexpr Range kSeed{-1, kInf};
constexpr Range kShare{0, 1, false, true};  // [0, 1)

std::vector<std::string_view> device_names() {
  return {"cpu", "cuda"};
}
std::vector<std::string_view> compute_names() {
  std::vector<std::string_view> names;
  for (const Precision& precision : kPrecisions) names.push_back(name_of(precision));
  return names;
}
std::vector<std::string_view> attention_names() {
  return {cuda::kAttentionNames.begin(), cuda::kAttentionNames.end()};
}
std::vector<std::string_view> isa_choices() {
  std::vector<std::string_view> names{"auto"};
  for (const std::string_view name : cpu::isa_names()) names.push_back(name);
  return names;
}
std::vector<std::string_view> tokenizer_names() {
  return {kBytesTokenizer};
}
std::vector<std::string_view> data_formats() {
  return names_of(dataset_formats());
}
std::vector<std::string_view> windows_names() {
  return {std::begin(kWindowsNames), std::end(kWindowsNames)};
}
std::vector<std::string_view> batch_names() {
  return {"constant", "grows"};
}
std::vector<std::string_view> cache_use_names() {
  return {"pays", "always"};
}
std::vector<std::string_view> model_names() {
  return names_of(models());
}
std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names = names_of(tasks());
  names.insert(names.begin(), "auto");
  return names;
}
std::vector<std::string_view> optimizer_names() {
  return names_of(optimizers());
}
std::vector<std::string_view> lr_schedule_names() {
  return names_of(lr_schedules());
}
std::vector<std::string_view> schedule_names() {
  return names_of(schedules());
}
std::vector<std::string_view> exchange_names() {
  return names_of(exchange_schemes());
}
std::vector<std::string_view> partitioner_names() {
  return names_of(partitioners());
}
std::vector<std::string_view> freeze_policy_names() {
  return names_of(freeze_policies());
}
std::vector<std::string_view> layout_policy_names() {
  return names_of(layout_policies());
}
std::vector<std::string_view> unfreeze_names() {
  return {kUnfreezeNames.begin(), kUnfreezeNames.end()};
}

const Key kKeys[] = {
    {KEY(run.name), "the run directory is <run.dir>/<run.name>", {}},
    {KEY(run.dir), "where run directories are", {}},
    {KEY(run.seed), "dropout follows from it, and weights and the order of the data by default",
     kNotNegative},
    {KEY(run.steps), "optimizer steps of the whole run", kSteps},
    {KEY(run.threads),
     "threads per rank; 0: the cores it may use / the ranks that share them",
     {0, 4096}},
    {KEY(run.watchdog),
     "seconds without progress in a step until each rank says whom it waits for; a quarter of that "
     "later the run ends. 0: never. While a run starts, loads, saves or measures, ranks only warn",
     {0, 1e6}},
    {KEY(run.peak_tflops),
     "10^12 floating-point operations per second that the device of a rank can do in "
     "numerics.compute, for MFU; 0: by the data sheet of an A100, H100 or H200, else no MFU",
     kNotNegative},
    {KEY(run.device), "where the kernels run", {}, device_names},
    {KEY(run.graphs),
     "on a GPU, record the kernels of a unit's pass as a CUDA graph and launch that from then on",
     {}},

    {KEY(model.family), "architecture", {}, model_names},
    {KEY(model.from),
     "what to start from: a folder of a Hugging Face model, a run directory or a checkpoint in "
     "one; "
     "empty: random weights",
     {}},
    {KEY(model.task),
     "what it is trained for, which decides its head; auto: the family's own",
     {},
     task_names},
    {KEY(model.layers), "transformer blocks", {1, 100000}},
    {KEY(model.width), "size of the residual stream", kCount},
    {KEY(model.heads), "attention heads; divides model.width", kCount},
    {KEY(model.context), "tokens of one sample", kCount},
    {KEY(model.vocab), "size of the vocabulary", {2, 1 << 24}},
    {KEY(model.classes), "of classification: how many", kCount},
    {KEY(model.dropout),
     "share of the embeddings, and of what each half-block adds, that a training step drops; none "
     "of attention's probabilities, and nothing in frozen units",
     kShare},
    {KEY(model.seed), "of the initial weights; -1: run.seed", kSeed},

    {KEY(data.format), "what the files of data are", {}, data_formats},
    {KEY(data.text), "with data.format = \"text\": files or globs, read in this order", {}},
    {KEY(data.files), "with any other data.format: files or globs, read in this order", {}},
    {KEY(data.validation_files),
     "held out, in place of the share data.validation of the others",
     {}},
    {KEY(data.test_files), "for `eval` alone", {}},
    {KEY(data.tokenizer), "how text becomes tokens", {}, tokenizer_names, names_tokenizer_files},
    {KEY(data.windows),
     "whether each epoch cuts the text into samples from another random offset (shifted), or all "
     "from its start, so that they hold the same samples, each time in a new order (fixed)",
     {},
     windows_names},
    {KEY(data.validation), "share of the data, at its end, that is held out", {0, 0.9}},
    {KEY(data.mean),
     "of an image: a pixel p in [0, 1] is read as (p - mean) / deviation; one number for all "
     "channels, or a list with one of each",
     {}},
    {KEY(data.deviation), "see data.mean", kPositive},
    {KEY(data.crop),
     "each epoch reads an image from a random place, up to so many pixels off, with zeros around "
     "it",
     {0, 1024}},
    {KEY(data.flip), "each epoch mirrors an image, left to right, by chance", {}},
    {KEY(data.stride),
     "of a text that is longer than a sample: tokens from one window of it to the next", kCount},
    {KEY(data.seed), "of the order of the data; -1: run.seed", kSeed},

    {KEY(batch.global), "samples of one optimizer step, over all ranks", kCount},
    {KEY(batch.microbatches), "equal parts of a step; divides batch.global", kCount},

    {KEY(freeze.units),
     "units from the first (embedding, attention, MLP, ...) that only run forward, from the start; "
     "a tensor that one of them shares is frozen wherever it is used",
     kIndex},
    {KEY(freeze.policy),
     "what decides during the run how many layers, from the first, only run forward; its options "
     "are keys of this section",
     {},
     freeze_policy_names},
    {KEY(freeze.every), "steps between a policy's decisions; 0: at the ends of epochs", kSteps},
    {KEY(freeze.max),
     "layers that a policy may freeze at most; 0: all, as long as something trains", kIndex},
    {KEY(freeze.unfreeze),
     "when all layers train again and the policy begins anew: on a rise of the training loss above "
     "its best, or of the learning rate after a fall (lr)",
     {},
     unfreeze_names},
    {KEY(freeze.unfreeze_rise),
     "rise of the loss above its best that counts for freeze.unfreeze, as a share of the best",
     kNotNegative},

    {KEY(elastic.policy),
     "what decides, after a freeze and every elastic.every steps, which layout the run goes on "
     "with; what is trained stays the same bits, unless elastic.batch says otherwise",
     {},
     layout_policy_names},
    {KEY(elastic.every), "steps between decisions besides those after a freeze; 0: none", kSteps},
    {KEY(elastic.depth), "whether pipelines may get another number of stages", {}},
    {KEY(elastic.replicas),
     "whether the number of replicas may change; what is left over of the ranks is spare",
     {}},
    {KEY(elastic.schedule), "whether `predicted` may take another schedule of the registry", {}},
    {KEY(elastic.least_gain),
     "smallest predicted gain, as a share of a step, that is worth a change: predictions are not "
     "exact",
     kShare},
    {KEY(elastic.batch),
     "what a change of the number of replicas makes of the batch: constant, or as large per "
     "replica as at the start (grows): steps then do the work of several at once, with one update, "
     "at the learning rate of the first of them",
     {},
     batch_names},

    {KEY(cache.memory),
     "shared memory of each host for what the frozen units made of each sample, so that later "
     "epochs read it in place of computing it; needs data.windows = \"fixed\". 0: none",
     {}},
    {KEY(cache.disk),
     "likewise on each host's disk, for samples that cache.memory has no room for",
     {}},
    {KEY(cache.dir), "where the files of cache.disk are; empty: the run directory", {}},
    {KEY(cache.use),
     "when entries are written and read: where reading one is faster than computing it (pays), or "
     "always",
     {},
     cache_use_names},

    {KEY(optimizer.name), "update rule", {}, optimizer_names},
    {KEY(optimizer.lr), "learning rate after warm-up", kPositive},
    {KEY(optimizer.betas),
     "decay of the two moments of adamw, lamb and, but for hidden matrices, muon", kShare},
    {KEY(optimizer.eps), "added to the root of their second moment", kPositive},
    {KEY(optimizer.weight_decay),
     "decay of matrices: decoupled, but of sgd, which adds it to the gradient", kNotNegative},
    {KEY(optimizer.clip), "largest global gradient norm; 0: no clipping", kNotNegative},

    {KEY(lr.schedule), "how the learning rate goes on after warm-up", {}, lr_schedule_names},
    {KEY(lr.warmup), "steps of linear warm-up; one-cycle has its own instead", kSteps},
    {KEY(lr.min), "learning rate at its last step, as a share of optimizer.lr", {0, 1}},
    {KEY(lr.steps),
     "step at which the learning rate reaches its end, where it stays; 0: run.steps at the first "
     "start, kept when run.steps grows later",
     kSteps},

    {KEY(parallel.pp), "pipeline stages (ranks per pipeline); 0: follows from the world size",
     kIndex},
    {KEY(parallel.dp), "replicas of the pipeline; 0: follows from the world size", kIndex},
    {KEY(parallel.chunks),
     "stages per rank of one pipeline; 0: as many as the schedule wants",
     {0, 1024}},
    {KEY(parallel.spare),
     "ranks that hold no stage and wait, without load, until a change of the layout wants them",
     kIndex},
    {KEY(parallel.move_memory),
     "memory that a rank may take besides the larger of both states while a change of the layout "
     "moves its state, at least one unit's; 0: a quarter of that state",
     {}},
    {KEY(parallel.schedule),
     "pipeline schedule; a path runs a schedule of your own",
     {},
     schedule_names,
     is_schedule_file},
    {KEY(parallel.overlap),
     "forwards run interleaved with the backwards after them, where that costs no wait",
     {}},
    {KEY(parallel.recompute),
     "units that keep their input alone from a forward to its backward, which computes the rest "
     "again: \"attention\" (selective), \"mlp\", \"full\" (both), or by number, \"3\" or \"4-7\"; "
     "bits stay",
     {}},
    {KEY(parallel.exchange),
     "how gradients of replicas meet and weights return; hierarchical: within each host first, for "
     "several ranks per host that share a slow network; bits stay",
     {},
     exchange_names},
    {KEY(parallel.transport),
     "of messages between GPUs: nccl, through host memory, or what works (auto)",
     {},
     transport_names},
    {KEY(parallel.partition), "how units are cut into stages", {}, partitioner_names},
    {KEY(parallel.layout),
     "any layout in place of pp and dp: [{stages = [{rank = 0, units = [0, 4]}, ...], "
     "microbatches = [0, 4]}, ...]",
     {}},

    {KEY(numerics.compute),
     "type of activations and of what products multiply; weights, sums and the update are fp32; "
     "tf32 (in fp32) and fp8 (in bf16) are of products alone, on a GPU",
     {},
     compute_names},
    {KEY(numerics.attention),
     "whose kernels do attention on a GPU: cudnn's, our own, or cudnn's where it can (auto; in "
     "bf16)",
     {},
     attention_names},
    {KEY(numerics.isa),
     "instruction sets of a CPU that all ranks compute by, since bits depend on them; auto: the "
     "best that every rank's processor has",
     {},
     isa_choices},
    {KEY(numerics.leaves),
     "leaves of the gradient sum, divides batch.microbatches; 0: its largest divisor <= 16. At "
     "most "
     "so many replicas; a rank that sums n leaves keeps up to log2(n) + 1 buffers of its gradients",
     kIndex},

    {KEY(checkpoint.every), "steps between checkpoints; 0: only at the end", kSteps},
    {KEY(checkpoint.keep),
     "newest checkpoints that stay (one more until the next step)",
     {1, 1 << 20}},
    {KEY(checkpoint.dir), "one run's alone; empty: <run directory>/checkpoints", {}},

    {KEY(eval.every), "steps between evaluations; 0: only at the end", kSteps},
    {KEY(eval.batches),
     "held-out text of the evaluation at the end, and of `eval`: so many times 4096 tokens from "
     "its "
     "start; 0: all of it",
     kIndex},
    {KEY(eval.periodic_batches), "likewise, of the evaluations before the end; 0: as eval.batches",
     kIndex},

    {KEY(generate.tokens),
     "tokens that `train` generates at its end; `generate` makes 200 where this is 0", kIndex},
    {KEY(generate.temperature), "0: always the likeliest token", {0, 100}},
    {KEY(generate.prompt), "text that the generated text goes on from", {}},

    {KEY(log.every), "steps between lines in the log", {1, 1e15}},
    {KEY(log.tensorboard), "write TensorBoard scalars into the run directory", {}},
    {KEY(log.trace),
     "steps to record in trace.json, after the first two of a launch; 0: none (see `report`)",
     kIndex},
    {KEY(log.trace_at),
     "steps from which on log.trace steps are recorded, in place of the start of a launch; each is "
     "trace-STEP.json, the last one also trace.json",
     {1, 1e15}},
    {KEY(log.trace_every), "likewise, from each step that it divides; 0: none", kSteps},
};
#undef KEY

/// A text that lives as long as the keys.
std::string_view keep(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

/// `owner`: the entry's name and that of the key that chooses one.
struct OptionOwner {
  std::string_view entry, chosen_by;
};

Key option_key(std::string name, const Option& option, const OptionOwner& owner,
               std::function<OptionValues&(RunConfig&)> values) {
  Key key{.name = keep(std::move(name)),
          .field =
              [values = std::move(values), of = std::string(option.name)](RunConfig& config) {
                return std::visit([](auto& value) -> KeyField { return &value; },
                                  values(config).at(of));
              },
          .meaning = keep(fmt::format("option of {}: {}", owner.entry, option.help)),
          .range = {option.low, option.high},
          .entry = owner.entry,
          .chosen_by = owner.chosen_by};
  if (!option.choices.empty()) key.choices = [choices = option.choices] { return choices; };
  return key;
}

std::vector<Key> freeze_option_keys() {
  std::vector<Key> keys;
  for (const Entry<FreezePolicy>& policy : freeze_policies())
    for (const Option& one : policy.value.options)
      keys.push_back(option_key(fmt::format("freeze.{}", one.name), one,
                                {policy.name, "freeze.policy"},
                                [](RunConfig& c) -> OptionValues& { return c.freeze.options; }));
  return keys;
}

/// The keys <section>.<entry>.<option> of a registry whose entries have options.
template <class T>
std::vector<Key> entry_option_keys(std::span<const Entry<T>> table, std::string_view section,
                                   std::string_view chosen_by,
                                   EntryOptions& (*values)(RunConfig&)) {
  std::vector<Key> keys;
  for (const Entry<T>& entry : table)
    for (const Option& one : entry.value.options)
      keys.push_back(option_key(
          fmt::format("{}.{}.{}", section, entry.name, one.name), one, {entry.name, chosen_by},
          [values, name = std::string(entry.name)](RunConfig& c) -> OptionValues& {
            return values(c).at(name);
          }));
  return keys;
}

/// The fixed keys, and after the last one of a section the options of its registry.
std::vector<Key> all_keys() {
  std::vector<Key> keys(std::begin(kKeys), std::end(kKeys));
  const auto add = [&](std::string_view section, const std::vector<Key>& options) {
    const auto place = std::find_if(keys.rbegin(), keys.rend(), [&](const Key& key) {
                         return key.name.substr(0, key.name.find('.')) == section;
                       }).base();
    keys.insert(place, options.begin(), options.end());
  };
  add("freeze", freeze_option_keys());
  add("model", entry_option_keys(models(), "model", "model.family",
                                 [](RunConfig& c) -> EntryOptions& { return c.model.options; }));
  add("optimizer",
      entry_option_keys(optimizers(), "optimizer", "optimizer.name",
                        [](RunConfig& c) -> EntryOptions& { return c.optimizer.options; }));
  add("lr", entry_option_keys(lr_schedules(), "lr", "lr.schedule",
                              [](RunConfig& c) -> EntryOptions& { return c.lr.options; }));
  return keys;
}

/// "global" of "batch.global", "llama.kv_heads" of "model.llama.kv_heads".
std::string_view within_section(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

std::string type_name(const KeyField& field) {
  constexpr const char* kNames[] = {"true or false",
                                    "an integer",
                                    "an integer",
                                    "a number",
                                    "a string",
                                    "a string or a list of strings",
                                    "a number or a list of numbers",
                                    "a list of two numbers",
                                    "an integer or a list of integers",
                                    "a size such as \"512 MiB\" or \"1.5 GB\", or 0",
                                    "a list of pipelines"};
  static_assert(std::size(kNames) == std::variant_size_v<KeyField>);
  return kNames[field.index()];
}

std::string bounds(const Range& range) {
  const bool low = range.low > -kInf, high = range.high < kInf;
  // {} prints 1048576 in full; %g-like output would hide digits that the user has to type.
  if (low && high && !range.open_low && !range.open_high)
    return fmt::format(" from {} to {}", range.low, range.high);
  std::string text;
  if (low) text += fmt::format(" {} {}", range.open_low ? ">" : ">=", range.low);
  if (high)
    text += fmt::format("{} {} {}", low ? " and" : "", range.open_high ? "<" : "<=", range.high);
  return text;
}

}  // namespace

bool Range::contains(double value) const {
  const bool above = open_low ? value > low : value >= low;
  const bool below = open_high ? value < high : value <= high;
  return above && below;
}

std::span<const Key> config_keys() {
  static const std::vector<Key> keys = all_keys();
  return keys;
}

const Key* find_key(std::string_view name) {
  const std::span<const Key> keys = config_keys();
  const auto key = std::find_if(keys.begin(), keys.end(),
                                [&](const Key& candidate) { return candidate.name == name; });
  return key == keys.end() ? nullptr : &*key;
}

bool applies(const Key& key, const RunConfig& config) {
  if (key.entry.empty()) return true;
  RunConfig copy = config;
  return *std::get<std::string*>(find_key(key.chosen_by)->field(copy)) == key.entry;
}

bool is_default(const Key& key, const RunConfig& config) {
  return value_text(key, config) == value_text(key, RunConfig{});
}

bool is_section(std::string_view name) {
  return !keys_of_section(name).empty();
}

bool is_table(std::string_view name) {
  return std::ranges::any_of(config_keys(), [&](const Key& key) {
    return key.name.starts_with(name) && key.name.substr(name.size()).starts_with('.');
  });
}

std::string keys_of_section(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : config_keys())
    if (key.name.substr(0, key.name.find('.')) == section)
      names.push_back(within_section(key.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string nearest_key(std::string_view name) {
  std::string_view best;
  std::size_t distance = std::string_view::npos;
  for (const Key& key : config_keys()) {
    std::size_t candidate = edit_distance(name, key.name);
    // The right key in the wrong table (or in none) is the most likely slip of all.
    if (last_part(key.name) == last_part(name)) candidate = std::min<std::size_t>(candidate, 1);
    if (candidate < distance) best = key.name, distance = candidate;
  }
  return is_slip(distance, name.size()) ? std::string(best) : std::string();
}

std::string expected(const Key& key) {
  if (key.choices != nullptr)
    return fmt::format("one of: {}{}", fmt::join(key.choices(), ", "),
                       key.is_file == nullptr ? "" : ", or the path of a file or folder");
  RunConfig defaults;
  const KeyField field = key.field(defaults);
  std::string text = type_name(field);
  if (std::holds_alternative<std::array<double, 2>*>(field) ||
      std::holds_alternative<std::vector<double>*>(field))
    if (const std::string limits = bounds(key.range); !limits.empty())
      return text + ", each" + limits;
  return text + bounds(key.range);
}

std::string value_text(const Key& key, const RunConfig& config) {
  RunConfig copy = config;
  if (key.name == "parallel.layout" && copy.parallel.layout.pipelines.empty()) return "[]";
  return std::visit([](const auto* value) { return to_toml(*value); }, key.field(copy));
}

std::string config_help() {
  const RunConfig defaults;
  std::string text, section;
  for (const Key& key : config_keys()) {
    const std::string_view table = key.name.substr(0, key.name.find('.'));
    if (table != section) {
      section = table;
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("  {} = {}\n      {}\n      {}\n", within_section(key.name),
                        value_text(key, defaults), key.meaning, expected(key));
  }
  return text;
}

}  // namespace concertina
