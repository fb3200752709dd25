// `concertina data inspect`: what a token file is, or what a format of data makes of files.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/run/planning.h"
#include "io/datasets/split_files.h"
#include "io/token_file.h"

namespace concertina {
namespace {

struct InspectOptions : CommandOptions {
  std::vector<std::string> files;  // or globs, or @FILE.toml
  std::vector<std::string> sets;   // "table.key=value"
  std::string format, tokenizer;   // empty: not given
  std::int64_t context = 128;
  bool verify = false;
};

constexpr std::uint64_t kTokensShown = 24;

std::string start_text(const TokenFile& file, const std::vector<std::int32_t>& start,
                       const InspectOptions& options) {
  const auto tokenizer = make_tokenizer(options.tokenizer, "--tokenizer");
  if (tokenizer->fingerprint() != file.info().tokenizer)
    throw_input(fmt::format("the file was made by another tokenizer: {}, not {}",
                            file.info().tokenizer, tokenizer->fingerprint()),
                "--tokenizer", "the one that it was prepared with");
  return tokenizer->decode(start);
}

void inspect_token_file(const std::string& path, const InspectOptions& options) {
  const TokenFile file(path);
  const TokenFileInfo& info = file.info();
  std::vector<std::int32_t> start(std::min(kTokensShown, info.tokens));
  file.read(0, start);
  const std::string text = options.tokenizer.empty() ? "" : start_text(file, start, options);
  if (options.verify) file.verify();
  if (options.json) {
    nlohmann::ordered_json json{{"path", path},
                                {"format", "token file"},
                                {"bytes", info.bytes()},
                                {"tokens", info.tokens},
                                {"token_bytes", info.width()},
                                {"documents", info.documents},
                                {"vocabulary", info.vocabulary},
                                {"tokenizer", info.tokenizer},
                                {"sha256", info.sha256},
                                {"verified", options.verify},
                                {"begins", start}};
    if (!options.tokenizer.empty()) json["text"] = text;
    return print_once(json_line(json));
  }
  std::string lines = fmt::format("file        {}\nformat      token file of concertina\n", path);
  lines += fmt::format("tokens      {}, {} bytes each\n", info.tokens, info.width());
  lines += fmt::format("documents   {}\nvocabulary  {}\n", info.documents, info.vocabulary);
  lines += fmt::format("tokenizer   {}\nsha256      {}{}\n", info.tokenizer, info.sha256,
                       options.verify ? ", verified" : "");
  lines += fmt::format("begins      {}\n", fmt::join(start, " "));
  if (!options.tokenizer.empty()) lines += fmt::format("text        {}\n", escape_bytes(text));
  print_once(lines);
}

/// The config of what is inspected: as a run has it, but that nothing is held out of files unless
/// somebody says so.
RunConfig inspected_config(const InspectOptions& options) {
  ConfigOptions given;
  given.defaults = {"data.validation=0"};
  for (const std::string& file : options.files)
    if (file.starts_with('@')) given.sources.push_back(file);
  given.sets = options.sets;
  if (!options.format.empty()) given.sets.push_back("data.format=" + options.format);
  if (!options.tokenizer.empty()) given.sets.push_back("data.tokenizer=" + options.tokenizer);
  if (options.given("--context"))
    given.sets.push_back(fmt::format("model.context={}", options.context));
  RunConfig config = load(given);
  std::vector<std::string> files;
  for (const std::string& file : options.files)
    if (!file.starts_with('@')) files.push_back(file);
  if (!files.empty())
    (files_key(config) == "data.text" ? config.data.text : config.data.files) = files;
  return config;
}

nlohmann::ordered_json splits_json(const Splits& splits, std::span<const std::string> classes) {
  nlohmann::ordered_json json;
  for (std::size_t s = 0; s < splits.sizes.size(); ++s) {
    nlohmann::ordered_json& one = json[std::string(kSplitNames[s])];
    one["items"] = splits.sizes[s];
    if (s > 0 && splits.compared) one["trained_too"] = splits.trained[s];
    for (std::size_t c = 0; c < classes.size() && c < splits.of_class[s].size(); ++c)
      one["classes"][classes[c]] = splits.of_class[s][c];
  }
  return json;
}

void inspect_dataset(const InspectOptions& options, const RunConfig& config) {
  const std::shared_ptr<const Dataset> dataset =
      open_dataset(data_options(config, tokenizer_of(config)));
  for (const char* const option : {"--context", "--tokenizer"})
    options.excludes(option, fmt::format("--format {}, which has no tokens", config.data.format),
                     field_index(*dataset, "tokens") < 0);
  if (!options.json) return print_once(dataset->summary());
  nlohmann::ordered_json json{
      {"format", config.data.format},        {"files", dataset->corpus().files()},
      {"bytes", dataset->corpus().size()},   {"samples", dataset->samples(Split::train)},
      {"vocabulary", dataset->vocabulary()}, {"fields", nlohmann::ordered_json::array()},
      {"classes", dataset->classes()}};
  for (const Field& field : dataset->fields()) json["fields"].push_back(field.name);
  if (dataset->splits() != nullptr)
    json["splits"] = splits_json(*dataset->splits(), dataset->classes());
  print_once(json_line(json));
}

int run_data_inspect(const InspectOptions& options) {
  const bool configured = std::ranges::any_of(
      options.files, [](const std::string& file) { return file.starts_with('@'); });
  if (options.format.empty() && !configured) {
    const std::vector<std::string> files = Corpus(options.files, "FILE").files();
    for (const char* const option : {"--context", "--set"})
      options.needs(option, "--format", false);
    if (files.size() != 1 || !is_token_file(files[0]))
      throw_input(fmt::format("{} is no token file of concertina", files[0]), "FILE",
                  fmt::format("--format = one of {}, or one token file",
                              fmt::join(names_of(dataset_formats()), ", ")));
    inspect_token_file(files[0], options);
    return 0;
  }
  if (options.verify)
    throw_input("files of this format have no hash to compare with", "--verify",
                "no --verify, or a file of `data prepare` without --format");
  const RunConfig config = inspected_config(options);
  return with_places(config, [&] {
    inspect_dataset(options, config);
    return 0;
  });
}

void add_inspect_options(CLI::App& app, InspectOptions& options) {
  app.add_option("files", options.files,
                 "a token file; with --format any files or globs; or @FILE.toml, whose keys of "
                 "[data] count")
      ->type_name("FILE|@FILE")
      ->required();
  std::vector<std::string> formats;
  for (const std::string_view name : names_of(dataset_formats())) formats.emplace_back(name);
  app.add_option("--format", options.format, "what the files are: as data.format")
      ->check(CLI::IsMember(formats));
  app.add_option("--tokenizer", options.tokenizer, "as data.tokenizer: shows the text as well")
      ->type_name("FILE|bytes");
  app.add_option("--context", options.context, "tokens of a sample, as model.context")
      ->check(whole_number(1, std::int64_t{1} << 24))
      ->capture_default_str();
  app.add_option("--set", options.sets,
                 "set one config key, such as data.validation=0.1 or data.validation_files=FILE; "
                 "may be repeated")
      ->type_name("TABLE.KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--verify", options.verify, "read all of a token file and compare its hash");
  add_json_option(app, options);
}

}  // namespace

Command command_data_inspect() {
  return make_command<InspectOptions>("what files of data are, and hold", add_inspect_options,
                                      run_data_inspect);
}

}  // namespace concertina
