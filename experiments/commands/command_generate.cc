#include "experiments/commands/command_generate.h"

#include "experiments/run/generate.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/session.h"

namespace concertina {
namespace {

int run_generate(const CommonOptions& options, MpiEnvironment& mpi) {
  Session session(with_fitting_layout(options.config, mpi.world().size()), mpi, "generate");
  const std::int64_t step =
      require_checkpoint(session.engine, checkpoint_directory(session.config));
  session.begin();
  const GenerateSection& wanted = session.config.generate;
  const std::string text = generate(session.engine, wanted, session.config.run.seed);
  if (options.json)
    print_once(
        nlohmann::ordered_json{{"step", step}, {"prompt", wanted.prompt}, {"text", text}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n");
  else
    print_once(wanted.prompt + text + "\n");
  return 0;
}

}  // namespace

Runner add_generate(CLI::App& app) {
  return with_config<CommonOptions>(app, add_json_option, run_generate);
}

}  // namespace concertina
