// `concertina data`: what has to be done to text before a run reads it.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

struct TrainTokenizerOptions {
  std::vector<std::string> files;  // or globs
  std::string out, pattern = "gpt2";
  std::int64_t vocabulary = 4096;
  std::vector<std::string> special{"<|endoftext|>"};
  bool prefix_space = false;
  bool json = false;
};
/// Writes `out`/tokenizer.json. On one process.
int run_train_tokenizer(const TrainTokenizerOptions& options);

Runner add_data(CLI::App& app);

}  // namespace concertina
