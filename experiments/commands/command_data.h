// `concertina data`: what has to be done to text before a run reads it, and what files of data are.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

/// Each adds its subcommand to `app`; once that is parsed, `chosen` is what runs it.
void add_data_prepare(CLI::App& app, Runner& chosen);
void add_data_inspect(CLI::App& app, Runner& chosen);
void add_train_tokenizer(CLI::App& app, Runner& chosen);

Runner add_data(CLI::App& app);

}  // namespace concertina
