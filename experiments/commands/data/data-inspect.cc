// `concertina data inspect`: describes a token file, or files that are read in a data format.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "experiments/commands/data/data_options.h"
#include "experiments/run/planning.h"
#include "io/datasets/split_files.h"
#include "io/token_file.h"

namespace concertina {
namespace {

struct InspectOptions : DataFileOptions {
  bool verify = false, quality = false;
};

constexpr std::uint64_t kTokensShown = 24;

std::string start_text(const TokenFile& file, const std::vector<std::int32_t>& start,
                       const InspectOptions& options) {
  const auto tokenizer = make_tokenizer(options.tokenizer, "--tokenizer");
  if (tokenizer->fingerprint() != file.info().tokenizer)
    throw_input(fmt::format("the file was prepared with a different tokenizer: {}, not {}",
                            file.info().tokenizer, tokenizer->fingerprint()),
                "--tokenizer", "the tokenizer that it was prepared with");
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
  std::string lines = fmt::format("file        {}\nformat      Concertina token file\n", path);
  lines += fmt::format("tokens      {}, {} bytes each\n", info.tokens, info.width());
  lines += fmt::format("documents   {}\nvocabulary  {}\n", info.documents, info.vocabulary);
  lines += fmt::format("tokenizer   {}\nsha256      {}{}\n", info.tokenizer, info.sha256,
                       options.verify ? ", verified" : "");
  lines += fmt::format("begins      {}\n", fmt::join(start, " "));
  if (!options.tokenizer.empty()) lines += fmt::format("text        {}\n", escape_bytes(text));
  print_once(lines);
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
      open_sources(config, tokenizer_of(config), std::identity());
  for (const char* const option : {"--context", "--tokenizer"})
    options.excludes(option, fmt::format("--format {}, which has no tokens", config.data.format),
                     field_index(*dataset, "tokens") < 0);
  dataset->verify([] {});
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
    for (const char* const option : {"--context", "--set", "--quality"})
      options.needs(option, "--format", false);
    if (files.size() != 1 || !is_token_file(files[0]))
      throw_input(fmt::format("{} is not a Concertina token file", files[0]), "FILE",
                  fmt::format("--format = one of {}, or a single token file",
                              fmt::join(names_of(dataset_formats()), ", ")));
    inspect_token_file(files[0], options);
    return 0;
  }
  if (options.verify)
    throw_input("files of this format have no stored hash", "--verify",
                "remove --verify, or remove --format and use a file written by `data prepare`");
  for (const char* const option : {"--near", "--report"})
    options.needs(option, "--quality", options.quality);
  const RunConfig config = data_config(options);
  return with_places(config, [&] {
    if (options.quality) return look_at_rows(options, config);
    inspect_dataset(options, config);
    return 0;
  });
}

void add_inspect_options(CLI::App& app, InspectOptions& options) {
  add_data_options(app, options,
                   "token file; with --format, files or globs; or @FILE.toml with [data] keys");
  app.add_flag("--verify", options.verify, "read the whole token file and verify its hash");
  app.add_flag("--quality", options.quality,
               "find faulty table rows: duplicates, held-out rows in the training data, empty "
               "or undecodable text, different labels for the same text");
  add_quality_options(app, options);
}

}  // namespace

Command command_data_inspect() {
  return make_command<InspectOptions>("show the format and contents of data files",
                                      add_inspect_options, run_data_inspect);
}

}  // namespace concertina
