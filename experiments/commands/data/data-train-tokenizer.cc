// `concertina data train-tokenizer`: trains a byte-level BPE on text.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <mutex>

#include "core/error.h"
#include "core/log.h"
#include "experiments/commands/command.h"
#include "io/corpus.h"
#include "io/file.h"
#include "io/for_all.h"
#include "io/tokenizers/bpe_trainer.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

struct TrainTokenizerOptions : CommandOptions {
  std::vector<std::string> files;  // or globs
  std::string out, pattern = "gpt2";
  std::int64_t vocabulary = 4096;
  std::vector<std::string> special{"<|endoftext|>"};
  bool prefix_space = false;
};

constexpr std::size_t kCountedBytes = std::size_t{4} << 20;

/// Counts the words of each file separately, on all cores of this process.
WordCounts counted_words(const std::vector<std::string>& files, const WordPattern& pattern) {
  WordCounts all;
  std::mutex mutex;
  const Corpus corpus(files, "FILE");
  corpus.require_utf8(/*mark=*/false);
  for (const std::string& path : corpus.files()) {
    const std::string text = read_file(path, std::uint64_t{1} << 40);
    std::vector<std::string_view> pieces;
    for (std::string_view left = text; !left.empty();) {
      const std::size_t end =
          left.size() <= kCountedBytes ? left.size() : line_cut(left, kCountedBytes);
      pieces.push_back(left.substr(0, end));
      left.remove_prefix(end);
    }
    for_all(pieces.size(), {}, [&](std::size_t i) {
      WordCounts mine;
      try {
        (pattern.prefix_space() ? count_lines : count_words)(pattern, pieces[i], mine);
      } catch (const Error& error) {
        throw_input(fmt::format("{}, counted from byte {}", error.message(),
                                pieces[i].data() - text.data()),
                    path, "UTF-8 text");
      }
      const std::lock_guard lock(mutex);
      for (const auto& [word, count] : mine) all[word] += count;
    });
  }
  return all;
}

void require_options(const TrainTokenizerOptions& options) {
  for (std::size_t i = 0; i < options.special.size(); ++i) {
    require_utf8(options.special[i]);
    for (std::size_t j = 0; j < i; ++j)
      if (options.special[i].empty() || options.special[i] == options.special[j])
        throw_input(fmt::format("the special token '{}' is listed twice", options.special[i]),
                    "--special", "distinct tokens");
  }
  if (options.prefix_space && options.pattern != "gpt2")
    throw_input(fmt::format("the pattern '{}' has no prefix space", options.pattern),
                "--prefix-space", "--pattern gpt2");
  const std::int64_t least = 256 + std::ssize(options.special);
  if (options.vocabulary < least)
    throw_input(fmt::format("a vocabulary of {} tokens cannot hold all bytes", options.vocabulary),
                "--vocabulary", fmt::format("at least {}", least));
}

/// Writes `out`/tokenizer.json. Runs on one process.
int run_train_tokenizer(const TrainTokenizerOptions& options) {
  require_options(options);
  const std::string path = (std::filesystem::path(options.out) / "tokenizer.json").string();
  require_nothing_at(path, "another --out");
  if (exists_at(options.out) && !is_folder(options.out))
    throw_input("not a directory", options.out, "--out DIRECTORY, existing or new");
  const auto start = std::chrono::steady_clock::now();
  const WordPattern pattern(options.pattern == "gpt2" ? WordPattern::gpt2() : WordPattern::llama3(),
                            "--pattern", options.prefix_space);
  const WordCounts counts = counted_words(options.files, pattern);
  log::info("{} distinct words", counts.size());
  const LearnedPairs learned = learn_pairs(counts, options.vocabulary, options.special);
  make_directories(options.out);
  atomic_replace(path, description_of(learned, pattern));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (options.json)
    print_once(json_line({{"path", path},
                          {"tokens", learned.tokens.size()},
                          {"words", counts.size()},
                          {"seconds", seconds.count()}}));
  else
    print_once(
        fmt::format("{}: {} tokens, {:.1f} s\n", path, learned.tokens.size(), seconds.count()));
  if (std::ssize(learned.tokens) < options.vocabulary)
    log::warn("no more pairs of tokens to merge: the vocabulary has {} of {} tokens",
              learned.tokens.size(), options.vocabulary);
  return 0;
}

void add_train_tokenizer_options(CLI::App& app, TrainTokenizerOptions& options) {
  app.add_option("files", options.files, "UTF-8 text files or globs")
      ->type_name("FILE")
      ->required();
  app.add_option("--out", options.out, "folder to write tokenizer.json to")
      ->type_name("DIRECTORY")
      ->required();
  add_default_option(app, "--vocabulary", options.vocabulary,
                     "vocabulary size in tokens, including all bytes and special tokens")
      ->check(whole_number(1, std::int64_t{1} << 22));
  add_default_option(app, "--pattern", options.pattern, "pattern that splits text into words")
      ->check(CLI::IsMember({"gpt2", "llama3"}));
  app.add_flag("--prefix-space", options.prefix_space,
               "put a space in front of texts that do not start with one; every line is a text");
  add_default_option(app, "--special", options.special,
                     "special token to include; may be repeated")
      ->type_name("TOKEN")
      ->allow_extra_args(false);  // otherwise CLI11 parses "[PAD]" as a list
  add_json_option(app, options);
}

}  // namespace

Command command_data_train_tokenizer() {
  return make_command<TrainTokenizerOptions>("train a byte-level BPE tokenizer on text",
                                             add_train_tokenizer_options, run_train_tokenizer);
}

}  // namespace concertina
