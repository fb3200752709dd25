// A table of decision times, in epochs or steps, and the number of frozen layers from then on.
#include <fmt/ranges.h>

#include <charconv>

#include "core/text/number_text.h"
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

constexpr const char* kForm = "\"epoch 2: 7\" or \"step 300: 7\": 7 layers from then on";

constexpr double kMostAfter = 1e15;  // the limit of run.steps

struct Row {
  std::string_view text{}, unit{};  // for example "epoch 2: 7" and "epoch"
  double after = 0;                 // time in that unit, at most kMostAfter
  int layers = 0;
};

/// Consumes the number at the start of `text`, with the blanks around it.
template <class T>
bool take_number(std::string_view& text, T& value) {
  const auto skip = [&] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  skip();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  skip();
  return true;
}

Row parse_row(std::string_view text) {
  Row row{.text = text};
  std::string_view rest = text;
  for (const std::string_view unit : {"epoch", "step"})
    if (rest.starts_with(unit)) row.unit = unit;
  rest.remove_prefix(row.unit.size());
  const bool read = !row.unit.empty() && rest.starts_with(' ') && take_number(rest, row.after) &&
                    rest.starts_with(':') && (rest.remove_prefix(1), take_number(rest, row.layers));
  if (!read || !rest.empty() || !(row.after <= kMostAfter))
    throw_input(fmt::format("freeze.at contains \"{}\", which is not a valid row", text),
                "freeze.at", kForm);
  return row;
}

std::vector<Row> parse_rows(const OptionValues& options) {
  std::vector<Row> rows;
  for (const std::string& text : option<std::vector<std::string>>(options, "at"))
    rows.push_back(parse_row(text));
  return rows;
}

void check_row(const Row& row, const Row* before, int layers, int most) {
  const auto refuse = [&](const std::string& why, std::string fix) {
    throw_input(fmt::format("freeze.at contains \"{}\", {}", row.text, why), "freeze.at",
                std::move(fix));
  };
  if (row.after <= 0)
    refuse("but the first decision is after the first step",
           "a later time; or freeze.units, which freezes from the start");
  if (row.layers < 1 || row.layers > layers)
    refuse(fmt::format("but the model has {}", counted(layers, "layer")),
           fmt::format("1 to {} layers", most));
  if (row.layers > most)
    refuse(fmt::format("but at most {} may be frozen (freeze.max; some must train)",
                       counted(most, "layer")),
           fmt::format("at most {} layers", most));
  if (before == nullptr) return;
  if (row.unit != before->unit)
    refuse(fmt::format("after \"{}\", which mixes epochs and steps", before->text),
           "epochs in all rows, or steps in all rows");
  if (row.after <= before->after || row.layers <= before->layers)
    refuse(fmt::format("after \"{}\", but times and layers must increase", before->text),
           "a later time and more layers than in the previous row");
}

void check(const OptionValues& options, int layers, int most) {
  const std::vector<Row> rows = parse_rows(options);
  if (rows.empty()) throw_input("freeze.policy = \"list\" needs a table", "freeze.at", kForm);
  const Row* before = nullptr;
  for (const Row& row : rows) {
    check_row(row, before, layers, most);
    before = &row;
  }
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const FreezeRecord& now = view.now();
  FreezeDecision decision{.frozen = now.frozen, .reason = "no row of freeze.at applies yet"};
  for (const Row& row : parse_rows(options)) {
    const double done = row.unit == "epoch" ? now.epoch - view.from_epoch
                                            : static_cast<double>(now.step - view.from_step);
    decision.statistic = done;
    if (done >= row.after) {
      decision.frozen = row.layers;
      decision.reason = fmt::format("row \"{}\" of freeze.at", row.text);
    }
  }
  return decision;
}

std::string unreached(const OptionValues& options, const FreezeRecord& last) {
  std::vector<std::string> rows;
  for (const Row& row : parse_rows(options))
    if (row.after > (row.unit == "epoch" ? last.epoch : static_cast<double>(last.step)))
      rows.push_back(fmt::format("\"{}\"", row.text));
  return rows.empty() ? "" : fmt::format("{} of freeze.at", fmt::join(rows, ", "));
}

}  // namespace

FreezePolicy policy_list() {
  return {
      .decide = decide,
      .options = {{"at", std::vector<std::string>{},
                   "rows such as \"epoch 2: 7\" or \"step 300: 7\": 7 layers are frozen from the "
                   "first decision after 2 epochs or 300 steps"}},
      .says_when = true,
      .foreseen = true,
      .check = check,
      .unreached = unreached,
      .about = "as many layers as a table of epochs or steps specifies (freeze.at)"};
}

}  // namespace concertina
