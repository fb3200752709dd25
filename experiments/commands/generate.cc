// `concertina generate`: continues texts with a run's best or newest checkpoint.
#include "experiments/evaluate/generate.h"

#include <cctype>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/log.h"
#include "experiments/commands/command.h"
#include "experiments/launch/launch.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/gather.h"
#include "experiments/run/best_commit.h"
#include "experiments/run/run_checkpoint.h"
#include "io/file.h"
#include "io/strict_json.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

constexpr int kTokens = 200;  // used if generate.tokens is 0, a value meant for the end of `train`
constexpr std::size_t kMostPromptBytes = std::size_t{1} << 30;

struct GenerateOptions : ConfigOptions {
  CheckpointChoice choice{};
  std::string prompts;  // file with one prompt per line
  bool logprobs = false;
};

/// The config for forward passes alone: one sample per microbatch, and no optimizer state.
RunConfig forward_config(RunConfig config) {
  config.data.text.clear();
  config.data.files.clear();  // only the prompts are needed
  config.batch.global = config.batch.microbatches;
  config.optimizer.name = "sgd";  // one tensor of state
  if (config.generate.tokens == 0) config.generate.tokens = kTokens;
  return config;
}

/// The n-th seed after `seed`; neither is negative.
std::int64_t seed_after(std::int64_t seed, std::int64_t n) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(seed) + static_cast<std::uint64_t>(n)) & kMost);
}

bool is_seed(const nlohmann::json& value) {
  return value.is_number_unsigned() && std::in_range<std::int64_t>(value.get<std::uint64_t>());
}

bool is_json_lines(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".jsonl" || ending == ".json";
}

Prompt prompt_of(const std::string& line, bool json, const std::string& where, std::int64_t seed) {
  if (!json) return {line, seed};
  const nlohmann::json one = parse_strict_object(line, where);
  for (const auto& [key, value] : one.items())
    if (!(key == "prompt" && value.is_string()) && !(key == "seed" && is_seed(value)))
      throw_input(
          fmt::format("unexpected \"{}\": {}", key, value.dump()), where,
          R"({"prompt": "text", "seed": 1}, where the seed is optional, and from 0 to 2^63 - 1)");
  if (!one.contains("prompt")) throw_input("\"prompt\" is missing", where, R"({"prompt": "text"})");
  return {one["prompt"].get<std::string>(), one.value("seed", seed)};
}

/// One prompt per line, as text or, in a .jsonl file, as JSON objects. Read on rank 0. Collective.
std::vector<Prompt> read_prompts(const std::string& path, std::int64_t seed, Communicator& world) {
  const nlohmann::json all = from_first(world, [&] {
    if (!exists_at(path)) throw_input("no such file", path, "a file with one prompt per line");
    std::string content = read_file(path, kMostPromptBytes);
    if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
    const bool json = is_json_lines(path);
    nlohmann::json prompts = nlohmann::json::array();
    for (std::size_t begin = 0, line = 1; begin < content.size(); ++line) {
      const std::size_t end = std::min(content.find('\n', begin), content.size());
      std::string text = content.substr(begin, end - begin);
      if (text.ends_with('\r')) text.pop_back();
      if (text.find_first_not_of(json ? " \t" : "") != std::string::npos) {
        const std::string where = fmt::format("{}:{}", path, line);
        const Prompt prompt = prompt_of(text, json, where, seed_after(seed, std::ssize(prompts)));
        if (prompt.text.empty()) throw_input("the prompt is empty", where, "at least one byte");
        if (!is_utf8(prompt.text)) throw_input("the prompt is not valid UTF-8", where, "UTF-8");
        prompts.push_back({prompt.text, prompt.seed});
      }
      begin = end + 1;
    }
    if (prompts.empty()) throw_input("no prompts", path, "one prompt per line");
    return prompts;
  });
  std::vector<Prompt> prompts;
  for (const nlohmann::json& one : all)
    prompts.push_back({one[0].get<std::string>(), one[1].get<std::int64_t>()});
  return prompts;
}

std::string json_of(std::int64_t step, const Prompt& prompt, const Continuation& continuation,
                    bool logprobs) {
  nlohmann::ordered_json line{{"step", step},
                              {"prompt", prompt.text},
                              {"text", continuation.text},
                              {"seed", prompt.seed},
                              {"tokens", continuation.log_probabilities.size()},
                              {"end", continuation.end}};
  if (logprobs) line["log_probabilities"] = continuation.log_probabilities;
  return json_line(line);
}

int run_generate(const GenerateOptions& options, MpiEnvironment& mpi) {
  options.needs("--logprobs", "--json", options.json);
  const RunConfig config = forward_config(options.config);
  const std::unique_ptr<Launch> launch = open_launch(config, mpi, "generate");
  const std::int64_t seed = config.run.seed;
  const std::vector<Prompt> prompts = options.given("--prompts")
                                          ? read_prompts(options.prompts, seed, launch->world)
                                          : std::vector<Prompt>{{config.generate.prompt, seed}};
  nlohmann::json stored;
  const std::int64_t step = require_checkpoint(
      launch->trainer, checkpoint_directory(launch->config), options.choice, &stored);
  launch->begin();
  if (launch->leads() && !options.json) log::info("model after {}", step_text(step, stored));
  launch->generate(prompts, {}, [&](std::size_t i, const Continuation& text) {
    print_once(options.json ? json_of(step, prompts[i], text, options.logprobs)
                            : terminal_text(prompts[i].text + text.text) + "\n");
  });
  return 0;
}

}  // namespace

Command command_generate() {
  return make_command<GenerateOptions>(
      "generate text with a run's best or newest checkpoint",
      [](CLI::App& app, GenerateOptions& options) {
        app.add_option(
               "--prompts", options.prompts,
               "file with one prompt per line, instead of generate.prompt; in a .jsonl "
               "file, lines are {\"prompt\": \"...\", \"seed\": N} (default seeds: run.seed, "
               "run.seed + 1, ...)")
            ->type_name("FILE");
        app.add_flag("--logprobs", options.logprobs,
                     "add each token's log-probability under the model; for --json");
        add_json_option(app, options);
        add_choice_options(app, options.choice);
      },
      run_generate);
}

}  // namespace concertina
