#include "parallel/schedule.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

constexpr std::array<std::pair<Kind, std::string_view>, 10> kNames{{
    {Kind::F, "F"},
    {Kind::I, "I"},
    {Kind::W, "W"},
    {Kind::B, "B"},
    {Kind::SEND_F, "SEND_F"},
    {Kind::RECV_F, "RECV_F"},
    {Kind::SEND_B, "SEND_B"},
    {Kind::RECV_B, "RECV_B"},
    {Kind::REDUCE, "REDUCE_GRAD"},
    {Kind::STEP, "STEP"},
}};

std::string_view name_of(Kind kind) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](auto& entry) { return entry.first == kind; })
      ->second;
}

/// Pieces of `text` between separators.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// Takes the digits that `text` starts with; none, or more than an index can have: nothing.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 9) return std::nullopt;
  int number = 0;
  for (const char digit : text.substr(0, digits)) number = 10 * number + (digit - '0');
  text.remove_prefix(digits);
  return number;
}

[[noreturn]] void refuse(std::string_view token, std::string_view why, const std::string& where) {
  throw_input(fmt::format("'{}' is no action: {}", token, why), where,
              "<stage><kind><microbatch>, kind one of F, I, W, B, SEND_F, RECV_F, SEND_B, RECV_B, "
              "as in 1SEND_F0; or <stage>REDUCE_GRAD; or STEP");
}

Action parse_action(std::string_view token, const std::string& where) {
  if (token == name_of(Kind::STEP)) return {Kind::STEP, 0, -1};
  std::string_view rest = token;
  const std::optional<int> stage = take_number(rest);
  if (!stage) refuse(token, "it does not start with a stage number", where);
  const std::size_t length = std::min(rest.find_first_of("0123456789"), rest.size());
  const std::string_view name = rest.substr(0, length);
  const auto entry =
      std::find_if(kNames.begin(), kNames.end(), [&](auto& e) { return e.second == name; });
  if (entry == kNames.end() || entry->first == Kind::STEP)
    refuse(token, fmt::format("unknown kind '{}'", name), where);
  rest.remove_prefix(length);
  if (entry->first == Kind::REDUCE) {
    if (!rest.empty()) refuse(token, "a reduction has no microbatch", where);
    return {Kind::REDUCE, *stage, -1};
  }
  const std::optional<int> microbatch = take_number(rest);
  if (!microbatch || !rest.empty())
    refuse(token, "it does not end with a microbatch number", where);
  return {entry->first, *stage, *microbatch};
}

}  // namespace

bool is_compute(Kind kind) {
  return kind <= Kind::B;
}
bool is_transfer(Kind kind) {
  return kind >= Kind::SEND_F && kind <= Kind::RECV_B;
}
bool is_send(Kind kind) {
  return kind == Kind::SEND_F || kind == Kind::SEND_B;
}

Action counterpart(const Action& transfer) {
  const auto [kind, stage, microbatch] = transfer;
  if (kind == Kind::SEND_F) return {Kind::RECV_F, stage + 1, microbatch};
  if (kind == Kind::RECV_F) return {Kind::SEND_F, stage - 1, microbatch};
  if (kind == Kind::SEND_B) return {Kind::RECV_B, stage - 1, microbatch};
  CONCERTINA_CHECK(kind == Kind::RECV_B, "{} is no transfer", to_text(transfer));
  return {Kind::SEND_B, stage + 1, microbatch};
}

std::string to_text(const Action& action) {
  if (action.kind == Kind::STEP) return std::string(name_of(Kind::STEP));
  if (action.kind == Kind::REDUCE) return fmt::format("{}{}", action.stage, name_of(action.kind));
  return fmt::format("{}{}{}", action.stage, name_of(action.kind), action.microbatch);
}

std::string to_text(const Plan& plan) {
  std::string text;
  for (const std::vector<Action>& row : plan.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += to_text(row[i]);
    }
    text += '\n';
  }
  return text;
}

Plan parse_plan(std::string_view text, const std::string& where) {
  std::vector<std::string_view> lines = pieces(text, '\n');
  if (lines.back().empty()) lines.pop_back();  // what follows the last newline
  Plan plan;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    std::vector<Action>& row = plan.rows.emplace_back();
    const std::vector<std::string_view> cells = pieces(lines[line], ',');
    for (std::size_t cell = 0; cell < cells.size(); ++cell) {
      const std::string_view token = trimmed(cells[cell]);
      if (token.empty()) continue;
      row.push_back(
          parse_action(token, fmt::format("{}:{}:{} (row:column)", where, line + 1, cell + 1)));
    }
  }
  const bool has_actions =
      std::any_of(plan.rows.begin(), plan.rows.end(), [](const auto& row) { return !row.empty(); });
  if (!has_actions)
    throw_input("the schedule has no actions", where, "one row of actions a rank, as in 0F0,0B0");
  return plan;
}

Layout infer_layout(const Plan& plan, const std::string& where) {
  std::map<int, int> rank_of;  // by stage
  Pipeline pipeline;
  for (int rank = 0; rank < static_cast<int>(plan.rows.size()); ++rank) {
    for (const Action& action : plan.rows[rank]) {
      if (action.kind != Kind::F) continue;
      const int holder = rank_of.try_emplace(action.stage, rank).first->second;
      if (holder != rank)
        throw_input(
            fmt::format("stage {} runs forwards on ranks {} and {}", action.stage, holder, rank),
            where, "each stage on one rank");
      pipeline.last_microbatch = std::max(pipeline.last_microbatch, action.microbatch + 1);
    }
  }
  for (const auto& [stage, rank] : rank_of) {
    const int next = static_cast<int>(pipeline.stages.size());
    if (stage != next)
      throw_input(fmt::format("stage {} has no forward", next), where,
                  fmt::format("stages 0 to {} without a gap", rank_of.rbegin()->first));
    pipeline.stages.push_back({rank, stage, stage + 1});
  }
  if (pipeline.stages.empty()) throw_input("the schedule has no forward", where, "as in 0F0,0B0");
  return {{pipeline}};
}

}  // namespace concertina
