#include "parallel/plan/schedule_text.h"

#include <algorithm>
#include <array>
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

/// Of PyTorch's runtime alone, and whether a microbatch belongs to it.
constexpr std::array<std::pair<std::string_view, bool>, 5> kNotes{{
    {"UNSHARD", false},
    {"RESHARD", false},
    {"WAIT_SEND_F", true},
    {"WAIT_SEND_B", true},
    {"WAIT_REDUCE_GRAD", false},
}};

constexpr std::string_view kOverlap = "OVERLAP_F_B";

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

/// Reads one token.
class CellParser {
 public:
  CellParser(std::string_view token, const std::string& where) : token_(token), where_(where) {}

  Cell parse() const {
    if (token_.empty()) return {};
    if (token_.front() == '(') return overlap();
    if (token_ == name_of(Kind::STEP)) return {{{Kind::STEP, 0, -1}}, ""};
    return single(token_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw_input(fmt::format("'{}' is no action: {}", token_, why), where_,
                "<stage><kind><microbatch>, kind one of F, I, W, B, SEND_F, RECV_F, SEND_B, "
                "RECV_B, as in 1SEND_F0; (<F>;<B or I>)OVERLAP_F_B, as in (0F1;1B0)OVERLAP_F_B; "
                "<stage>REDUCE_GRAD; STEP");
  }

  Cell single(std::string_view text) const {
    const std::optional<int> stage = take_number(text);
    if (!stage) refuse("it does not start with a stage number");
    const std::size_t length = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (const auto note = std::find_if(kNotes.begin(), kNotes.end(),
                                       [&](auto& entry) { return entry.first == name; });
        note != kNotes.end()) {
      const int microbatch = take_microbatch(text, note->second);
      if (microbatch < 0) return {{}, fmt::format("{}{}", *stage, name)};
      return {{}, fmt::format("{}{}{}", *stage, name, microbatch)};
    }
    const auto kind = std::find_if(kNames.begin(), kNames.end(),
                                   [&](auto& entry) { return entry.second == name; });
    if (kind == kNames.end() || kind->first == Kind::STEP)
      refuse(fmt::format("unknown kind '{}'", name));
    return {{{kind->first, *stage, take_microbatch(text, kind->first != Kind::REDUCE)}}, ""};
  }

  /// What is left of a token; -1 where no microbatch is due.
  int take_microbatch(std::string_view text, bool due) const {
    if (!due && !text.empty()) refuse("it has no microbatch");
    if (!due) return -1;
    const std::optional<int> microbatch = take_number(text);
    if (!microbatch || !text.empty()) refuse("it does not end with a microbatch number");
    return *microbatch;
  }

  Cell overlap() const {
    const std::size_t close = token_.find(')');
    if (close == std::string_view::npos || token_.substr(close + 1) != kOverlap)
      refuse("an overlap ends with )OVERLAP_F_B");
    Cell cell;
    for (const std::string_view part : pieces(token_.substr(1, close - 1), ';')) {
      const std::vector<Action> actions = single(trimmed(part)).actions;
      cell.actions.insert(cell.actions.end(), actions.begin(), actions.end());
    }
    const std::vector<Action>& both = cell.actions;
    if (both.size() != 2 || both[0].kind != Kind::F || (!makes_input_gradient(both[1].kind)))
      refuse("an overlap is an F and then a B or an I");
    cell.actions[0].overlapped = true;
    return cell;
  }

  std::string_view token_;
  const std::string& where_;
};

std::string overlap_text(const Action& forward, const Action& backward) {
  return fmt::format("({};{}){}", to_text(forward), to_text(backward), kOverlap);
}

}  // namespace

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
      if (row[i].overlapped && i + 1 < row.size()) {
        text += overlap_text(row[i], row[i + 1]);
        ++i;
      } else {
        text += to_text(row[i]);
      }
    }
    text += '\n';
  }
  return text;
}

std::string to_text(const ScheduleText& schedule) {
  std::string text;
  for (const std::vector<Cell>& row : schedule.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::vector<Action>& actions = row[i].actions;
      if (i > 0) text += ',';
      if (actions.size() == 2)
        text += overlap_text(actions[0], actions[1]);
      else
        text += actions.empty() ? row[i].note : to_text(actions[0]);
    }
    text += '\n';
  }
  return text;
}

ScheduleText parse_schedule(std::string_view text, const std::string& where) {
  std::vector<std::string_view> lines = pieces(text, '\n');
  while (!lines.empty() && trimmed(lines.back()).empty()) lines.pop_back();
  ScheduleText schedule;
  bool has_actions = false;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    if (trimmed(lines[line]).empty())
      throw_input("a blank line between two rows: a rank without actions",
                  fmt::format("{}:{}", where, line + 1),
                  "one row a rank, each with a stage; blank lines at the end only");
    std::vector<Cell>& row = schedule.rows.emplace_back();
    const std::vector<std::string_view> tokens = pieces(lines[line], ',');
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string place = fmt::format("{}:{}:{} (row:column)", where, line + 1, i + 1);
      row.push_back(CellParser(trimmed(tokens[i]), place).parse());
      has_actions |= !row.back().actions.empty();
    }
  }
  if (!has_actions)
    throw_input("the schedule has no actions", where, "one row of actions a rank, as in 0F0,0B0");
  return schedule;
}

Plan plan_of(const ScheduleText& schedule) {
  Plan plan;
  for (const std::vector<Cell>& cells : schedule.rows) {
    std::vector<Action>& row = plan.rows.emplace_back();
    for (const Cell& cell : cells) row.insert(row.end(), cell.actions.begin(), cell.actions.end());
  }
  return plan;
}

Plan parse_plan(std::string_view text, const std::string& where) {
  return plan_of(parse_schedule(text, where));
}

}  // namespace concertina
