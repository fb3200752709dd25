// `concertina data prepare`: data.text, or the rows of a table, into a token file, by all ranks.
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
    throw_input("the tokenizer has no token for the end of a text", "--append-end",
                "no --append-end, or a tokenizer with such a token (<|endoftext|>, </s>)");
  return options;
}

/// Keys that name data, but none that becomes tokens here.
void check_prepared_keys(const RunConfig& config) {
  if (config.data.format != "text" && !is_table(config))
    throw_input(
        fmt::format("data.format = \"{}\" is not prepared", config.data.format), "data.format",
        fmt::format("\"text\", the default, or one of: {}", fmt::join(kTableFormats, ", ")));
  if (const std::string key = files_key(config); data_files(config).empty())
    throw_input("no text is named", key, fmt::format("{} = files or globs", key));
  for (const auto& [key, files] :
       {std::pair{"data.validation_files", &config.data.validation_files},
        {"data.test_files", &config.data.test_files}})
    if (!files->empty())
      throw_input(
          fmt::format("one file is made at a time, of {}", files_key(config)), key,
          fmt::format("a `data prepare` of its own for each split; {} then names the result", key));
}

/// Every rank makes the same file of the same text.
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
  app.add_option("--out", command.out, "the token file; data.format = \"tokens\" reads it")
      ->type_name("FILE")
      ->required();
  app.add_option("--documents", command.documents, "what a document is")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kDocumentRules), std::end(kDocumentRules))))
      ->capture_default_str();
  app.add_flag("--append-end", command.append_end,
               "after each document the tokenizer's end of text, in place of its last line breaks");
  app.add_option("--chunk", command.chunk_kib,
                 "KiB of text that a rank encodes at a time; changes no byte of the file")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  add_json_option(app, command);
}

}  // namespace

Command command_data_prepare() {
  return make_command<PrepareCommand>(
      "text into a token file, by all ranks; started again it goes on", declare_prepare,
      run_data_prepare);
}

}  // namespace concertina
