#include <fmt/format.h>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/report/report_page.h"
#include "experiments/run/planning.h"
#include "io/figure/page.h"
#include "io/run_files.h"

namespace concertina {
namespace {

/// Facts of a table of two columns; a row without a value is left out.
class Facts {
 public:
  void add(const char* name, const std::string& value) {
    if (value.empty()) return;
    text_ += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", name, html::escape(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A text as it is, anything else in JSON's words; nothing of null and what is not there.
std::string plain_text(const nlohmann::json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return grouped(value.get<std::int64_t>());
  if (value.is_object() || value.is_array()) {
    std::string text;
    for (const auto& [key, part] : value.items()) {
      const std::string one = plain_text(part);
      if (one.empty()) continue;
      text += text.empty() ? "" : ", ";
      text += value.is_object() ? fmt::format("{} {}", key, one) : one;
    }
    return text;
  }
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string field_text(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? "" : plain_text(*at);
}

std::string command_text(const nlohmann::json& launch) {
  const auto words = launch.find("command");
  if (words == launch.end() || !words->is_array()) return field_text(launch, "command");
  std::string text;
  for (const nlohmann::json& word : *words) text += (text.empty() ? "" : " ") + plain_text(word);
  return text;
}

/// Where and by what: of the last launch; how many there were.
void add_launch(const RunFiles& run, Facts& facts) {
  if (run.launches.empty()) return;
  const nlohmann::json& last = run.launches.back();
  facts.add("program", fmt::format("concertina {}, commit {}", field_text(last, "version"),
                                   field_text(last, "commit")));
  facts.add("command", command_text(last));
  if (const auto hosts = last.find("hosts"); hosts != last.end() && hosts->is_array())
    for (const nlohmann::json& host : *hosts) facts.add("host", plain_text(host));
  if (run.launches.size() > 1)
    facts.add("launches", fmt::format("{}, the last one from step {} on", run.launches.size(),
                                      field_text(last, "from")));
}

void add_times(const RunFiles& run, Facts& facts) {
  if (run.metrics.empty()) return;
  facts.add("first step ended", run.metrics.front().time);
  facts.add("last step ended", run.metrics.back().time);
  const StepTotals all = total(run.metrics);
  if (all.steps > 0)
    facts.add("duration",
              fmt::format("{} for {} steps", duration_text(all.seconds), grouped(all.steps)));
}

void add_model(const RunFiles& run, Facts& facts) {
  RunConfig config;
  try {
    read_config(run.config, kConfigFile, config);
    const std::int64_t parameters = parameter_count(make_buckets(job_of(config).model));
    const ModelSection& model = config.model;
    facts.add("model", fmt::format("{}, {} layers, width {}, {} heads, context {}, vocabulary {}: "
                                   "{} parameters",
                                   model.family, model.layers, model.width, model.heads,
                                   model.context, model.vocab, grouped(parameters)));
  } catch (const Error&) {  // of another version of the program: the page has its text below
    return;
  }
  facts.add("step", fmt::format("{} samples, {} tokens, in {} microbatches", config.batch.global,
                                grouped(tokens_of_step(config)), config.batch.microbatches));
  facts.add("numbers", fmt::format("{} on {}, seed {}", config.numerics.compute, config.run.device,
                                   config.run.seed));
}

}  // namespace

std::string about_section(const RunFiles& run) {
  Facts facts;
  add_launch(run, facts);
  add_times(run, facts);
  add_model(run, facts);
  if (!run.result.is_null()) facts.add("state_sha256", field_text(run.result, "state_sha256"));
  return "<h2>Run</h2>\n<div class=\"wide\"><table class=\"about\">\n" + facts.text() +
         "</table></div>\n";
}

}  // namespace concertina
