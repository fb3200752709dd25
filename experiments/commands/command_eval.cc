#include "experiments/commands/command_eval.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "experiments/run/evaluate.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/session.h"

namespace concertina {
namespace {

int run_eval(const CommonOptions& options, MpiEnvironment& mpi) {
  if (options.config.data.text.empty())
    throw_input("there is no text to evaluate on", options.config.where("data.text"),
                "--set data.text=FILE");
  Session session(with_fitting_layout(options.config, mpi.world().size()), mpi, "eval");
  const std::int64_t step =
      require_checkpoint(session.engine, checkpoint_directory(session.config));
  session.begin();
  const Validation result = evaluate(session.engine, session.dataset, session.config.eval.batches);
  if (result.targets == 0)
    throw_input("the text has no held-out part", session.config.where("data.validation"),
                "data.validation = 0.1, or a longer text");
  const double bits = result.loss / std::log(2.0);
  if (options.json)
    print_once(nlohmann::ordered_json{{"step", step},
                                      {"loss", result.loss},
                                      {"bits_per_token", bits},
                                      {"perplexity", std::exp(result.loss)},
                                      {"tokens", result.targets}}
                   .dump() +
               "\n");
  else
    print_once(fmt::format(
        "step {}: held-out loss {:.4f} nats a token, {:.4f} bits, perplexity {:.3f}, {} tokens\n",
        step, result.loss, bits, std::exp(result.loss), result.targets));
  return 0;
}

}  // namespace

Runner add_eval(CLI::App& app) {
  return with_config<CommonOptions>(app, add_json_option, run_eval);
}

}  // namespace concertina
