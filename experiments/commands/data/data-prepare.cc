// `concertina data prepare`: converts data.text, or the rows of a table, to a token file on all
// ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/prepare/prepare_tokens.h"
#include "experiments/run/agreement.h"
#include "experiments/run/planning.h"
#include "io/labelled/table_text.h"

namespace concertina {
namespace {

struct PrepareCommand : ConfigOptions {
  std::string out, documents{kDocumentRules[0]};
  std::int64_t chunk_kib = 4096;
  bool append_end = false;
};

bool is_table(const RunConfig& config) {
  return std::ranges::find(kTableFormats, config.data.format) != std::end(kTableFormats);
}

PrepareOptions prepare_options(const PrepareCommand& command, const Tokenizer& tokenizer) {
  PrepareOptions options;
  const auto* const rule = std::ranges::find(kDocumentRules, command.documents);
  options.documents = static_cast<DocumentRule>(rule - std::begin(kDocumentRules));
  options.chunk_bytes = static_cast<std::uint64_t>(command.chunk_kib) << 10;
  if (is_table(command.config)) options.end = end_of_row(tokenizer);
  if (!command.append_end) return options;
  if (const auto end = tokenizer.special(SpecialToken::end))
    options.end = {*end};
  else
    throw_input("the tokenizer has no end-of-text token", "--append-end",
                "remove --append-end, or use a tokenizer with one (<|endoftext|>, </s>)");
  return options;
}

/// Throws unless the keys name data that can be tokenized.
void check_prepared_keys(const RunConfig& config) {
  if (config.data.format != "text" && !is_table(config))
    throw_input(fmt::format("data.format = \"{}\" cannot be prepared", config.data.format),
                "data.format",
                fmt::format("\"text\", or one of: {}", fmt::join(kTableFormats, ", ")));
  if (const std::string key = files_key(config); data_files(config).empty())
    throw_input("no text to prepare", key, fmt::format("{} = files or globs", key));
  for (const auto& [key, files] :
       {std::pair{"data.validation_files", &config.data.validation_files},
        {"data.test_files", &config.data.test_files}})
    if (!files->empty())
      throw_input(fmt::format("only {} is prepared", files_key(config)), key,
                  fmt::format("run `data prepare` once per split and set {} to the result", key));
}

/// Throws unless every rank creates the same file from the same text.
void agree_on(Communicator& world, const PrepareCommand& command, const Tokenizer& tokenizer,
              const Corpus& corpus) {
  RunConfig config = command.config;
  config.data.tokenizer = tokenizer.fingerprint();
  std::vector<RankClaim> claims = claims_of(config, "data prepare", corpus.fingerprint());
  claims.push_back({"--out", command.out});
  claims.push_back({"--documents", command.documents});
  claims.push_back({"--append-end", command.append_end ? "true" : "false"});
  claims.push_back({"--chunk", std::to_string(command.chunk_kib)});
  agree(world, config, claims);
}

void print_prepared(const PrepareCommand& command, const PreparedText& made) {
  const double rate = static_cast<double>(made.text_bytes) / 1e6 / made.seconds;
  if (!command.json)
    return print_once(fmt::format(
        "{}: {} tokens, {} documents, {:.1f} MB of {:.1f} MB of text, {:.1f} s ({:.1f} MB/s)\n",
        command.out, made.info.tokens, made.info.documents,
        static_cast<double>(made.info.bytes()) / 1e6, static_cast<double>(made.text_bytes) / 1e6,
        made.seconds, rate));
  print_once(json_line({{"path", command.out},
                        {"tokens", made.info.tokens},
                        {"documents", made.info.documents},
                        {"vocabulary", made.info.vocabulary},
                        {"bytes", made.info.bytes()},
                        {"text_bytes", made.text_bytes},
                        {"chunks", made.chunks},
                        {"chunks_kept", made.kept},
                        {"seconds", made.seconds},
                        {"sha256", made.info.sha256}}));
}

int run_data_prepare(const PrepareCommand& command, MpiEnvironment& mpi) {
  check_prepared_keys(command.config);
  require_nothing_at(command.out, "another --out, or remove the file");
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(command.config);
  PrepareOptions options = prepare_options(command, *tokenizer);
  const Corpus corpus(data_files(command.config), files_key(command.config));
  corpus.require_utf8(/*mark=*/is_table(command.config));
  std::optional<LabelledRows> rows;
  if (is_table(command.config)) {
    command.excludes("--documents", "a table, whose rows are documents", true);
    DataOptions data = data_options(command.config, tokenizer);
    data.documents = "joined";
    data.labelled = false;
    std::array<std::uint64_t, 3> counts{};
    options.rows = &rows.emplace(rows_of(data, counts));
  }
  Communicator& world = mpi.world();
  const LaunchWatch watch(mpi);
  agree_on(world, command, *tokenizer, corpus);
  const PreparedText made = prepare_tokens(world, corpus, *tokenizer, options, command.out);
  if (world.rank() == 0) print_prepared(command, made);
  return 0;
}

void declare_prepare(CLI::App& app, PrepareCommand& command) {
  app.add_option("--out", command.out, "token file to write, for data.format = \"tokens\"")
      ->type_name("FILE")
      ->required();
  add_default_option(app, "--documents", command.documents, "rule that splits text into documents")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kDocumentRules), std::end(kDocumentRules))));
  app.add_flag("--append-end", command.append_end,
               "replace each document's trailing line breaks with the end-of-text token");
  add_default_option(app, "--chunk", command.chunk_kib,
                     "KiB of text that a rank encodes at a time; does not affect the result")
      ->check(whole_number(1, std::int64_t{1} << 20));
  add_json_option(app, command);
}

}  // namespace

Command command_data_prepare() {
  return make_command<PrepareCommand>("convert text to a token file on all ranks; resumes if rerun",
                                      declare_prepare, run_data_prepare);
}

}  // namespace concertina
