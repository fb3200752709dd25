#include "experiments/study/sampler.h"

#include <fmt/format.h>

#include <array>
#include <deque>

#include "sampler_table.h"

namespace concertina {

CONCERTINA_REGISTRY_IN(CONCERTINA_SAMPLERS, SearchMethod, samplers, search_methods)

const SearchMethod& method_of(const SearchSection& search) {
  return lookup(search_methods(), search.method, "method", "search.method");
}

namespace {

constexpr std::array<std::string_view, 2> kGoals = {"min", "max"};

/// All options are integers so far.
void read_option(TomlTable& table, const Option& one, OptionValue& value) {
  if (auto* number = std::get_if<std::int64_t>(&value))
    table.whole(one.name, static_cast<std::int64_t>(one.low), static_cast<std::int64_t>(one.high),
                *number);
  else
    table.text(one.name, std::get<std::string>(value));
}

/// Throws Error{bad_input} for an option of a method other than the chosen one.
void refuse_idle_options(TomlTable& table, const std::string& chosen) {
  for (const Entry<SearchMethod>& method : search_methods())
    for (const Option& one : method.value.options)
      if (method.name != chosen && table.take(one.name) != nullptr)
        table.refuse(fmt::format("{} has no effect: method = \"{}\"", table.name(one.name), chosen),
                     fmt::format("method = \"{}\", or remove {}", method.name, one.name));
}

class ListSampler : public Sampler {
 public:
  explicit ListSampler(std::deque<TrialTask> tasks) : left_(std::move(tasks)) {}
  std::optional<TrialTask> next(bool) override {
    if (left_.empty()) return std::nullopt;
    TrialTask task = std::move(left_.front());
    left_.pop_front();
    return task;
  }
  void tell(const TrialRecord&) override {}
  std::optional<int> left() const override { return static_cast<int>(left_.size()); }

 private:
  std::deque<TrialTask> left_;
};

}  // namespace

SearchSection read_search(const TomlSource& source, const toml::node& node) {
  SearchSection search;
  TomlTable table(source, node, "search");
  table.take("method", [&](const toml::node& value, const std::string& name) {
    search.method = source.choice(value, name, names_of(search_methods()));
  });
  table.text("metric", search.metric);
  table.take("goal", [&](const toml::node& value, const std::string& name) {
    search.minimise = source.choice(value, name, kGoals) == "min";
  });
  const SearchMethod& method = method_of(search);
  search.options = with_defaults(method.options);
  for (const Option& one : method.options)
    read_option(table, one, search.options.find(one.name)->second);
  refuse_idle_options(table, search.method);
  table.finish();
  if (!method.independent() && search.metric.empty())
    table.refuse(fmt::format("{} requires a metric", search.method),
                 "metric = \"validation_loss\"");
  for (const Option& one : method.options) {
    const auto* number = std::get_if<std::int64_t>(&search.options.find(one.name)->second);
    if (number != nullptr && static_cast<double>(*number) < one.low)
      table.refuse(fmt::format("{} requires {}, the {}", search.method, one.name, one.help),
                   fmt::format("{} = N", one.name));
  }
  return search;
}

std::unique_ptr<Sampler> list_sampler(const StudySpec& spec,
                                      const std::function<bool(int number)>& wanted) {
  std::deque<TrialTask> tasks;
  for (Trial& trial : trials_of(spec))
    if (wanted(trial.number)) tasks.push_back({std::move(trial)});
  return std::make_unique<ListSampler>(std::move(tasks));
}

}  // namespace concertina
