// The text form of plans: PyTorch's pipelining CSV (torch.distributed.pipelining.schedules,
// `_dump_csv` and `_load_csv`, in both formats, with STEP added), one row per rank, one cell per
// action. Idle cells are skipped, as are the actions of PyTorch's runtime that mean nothing here:
// <stage>UNSHARD, RESHARD (weights are whole), <stage>WAIT_SEND_F<microbatch>, WAIT_SEND_B (the
// reuse of a buffer waits) and <stage>WAIT_REDUCE_GRAD (STEP waits).

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "parallel/plan/schedule.h"

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

/// Actions that only PyTorch's runtime needs, and whether they have a microbatch.
constexpr std::array<std::pair<std::string_view, bool>, 5> kNotes{{
    {"UNSHARD", false},
    {"RESHARD", false},
    {"WAIT_SEND_F", true},
    {"WAIT_SEND_B", true},
    {"WAIT_REDUCE_GRAD", false},
}};

constexpr std::string_view kOverlap = "OVERLAP_F_B";

/// Consumes and returns the text before the next separator, or all of it. Drops the separator.
std::string_view take_piece(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// Shortens invalid input to a length suitable for a message.
std::string shown(std::string_view token) {
  constexpr std::size_t kMost = 60;
  if (token.size() <= kMost) return std::string(token);
  return fmt::format("{}... ({} bytes)", token.substr(0, kMost), token.size());
}

/// Nothing, an action, or an overlapped F and the next B or I, "(0F1;1B0)OVERLAP_F_B".
struct ParsedCell {
  std::array<Action, 2> actions;
  std::size_t count = 0;  // number of actions

  std::span<const Action> all() const { return std::span(actions).first(count); }
};

/// Row and column of a token, from 0.
struct TokenPlace {
  const std::string& source;
  std::size_t row, column;
};

/// Parses one token.
class CellParser {
 public:
  CellParser(std::string_view token, const TokenPlace& place) : token_(token), place_(place) {}

  ParsedCell parse() const {
    if (token_.empty()) return {};
    if (token_.front() == '(') return overlap();
    if (token_ == name_of(Kind::STEP)) return {{Action{Kind::STEP, 0, -1}}, 1};
    return single(token_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw_input(
        fmt::format("'{}' is not an action: {}", shown(token_), why),
        fmt::format("{}:{}:{} (row:column)", place_.source, place_.row + 1, place_.column + 1),
        "<stage><kind><microbatch> with kind F, I, W, B, SEND_F, RECV_F, SEND_B or RECV_B, as in "
        "1SEND_F0; (<F>;<B or I>)OVERLAP_F_B, as in (0F1;1B0)OVERLAP_F_B; <stage>REDUCE_GRAD; "
        "STEP");
  }

  /// Consumes leading digits and returns their value, or nothing if there are none.
  std::optional<int> take_number(std::string_view& text) const {
    constexpr std::size_t kMostDigits = 9;
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return std::nullopt;
    if (digits > kMostDigits) refuse("a number exceeds the maximum of 999999999");
    int number = 0;
    for (const char digit : text.substr(0, digits)) number = 10 * number + (digit - '0');
    text.remove_prefix(digits);
    return number;
  }

  ParsedCell single(std::string_view text) const {
    const std::optional<int> stage = take_number(text);
    if (!stage) refuse("expected a stage number at the start");
    const std::size_t length = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (const auto note = std::find_if(kNotes.begin(), kNotes.end(),
                                       [&](auto& entry) { return entry.first == name; });
        note != kNotes.end()) {
      take_microbatch(text, note->second);
      return {};
    }
    const auto kind = std::find_if(kNames.begin(), kNames.end(),
                                   [&](auto& entry) { return entry.second == name; });
    if (kind == kNames.end() || kind->first == Kind::STEP)
      refuse(fmt::format("unknown kind '{}'", shown(name)));
    const int microbatch = take_microbatch(text, kind->first != Kind::REDUCE);
    return {{Action{kind->first, *stage, microbatch}}, 1};
  }

  /// Returns the microbatch, which is the rest of a token, or -1 if none is expected.
  int take_microbatch(std::string_view text, bool due) const {
    if (!due && !text.empty()) refuse("this kind has no microbatch");
    if (!due) return -1;
    const std::optional<int> microbatch = take_number(text);
    if (!microbatch || !text.empty()) refuse("expected a microbatch number at the end");
    return *microbatch;
  }

  ParsedCell overlap() const {
    const std::size_t close = token_.find(')');
    if (close == std::string_view::npos || token_.substr(close + 1) != kOverlap)
      refuse("an overlap must end with )OVERLAP_F_B");
    ParsedCell cell;
    std::string_view rest = token_.substr(1, close - 1);
    while (!rest.empty() && cell.count < 2) {
      const ParsedCell part = single(trimmed(take_piece(rest, ';')));
      if (part.count == 1) cell.actions[cell.count++] = part.actions[0];
      if (part.count == 0) break;
    }
    const auto& [forward, backward] = cell.actions;
    if (cell.count != 2 || !rest.empty() || forward.kind != Kind::F ||
        !makes_input_gradient(backward.kind))
      refuse("an overlap must be an F followed by a B or I");
    cell.actions[0].overlapped = true;
    return cell;
  }

  std::string_view token_;
  const TokenPlace& place_;
};

std::string overlap_text(const Action& forward, const Action& backward) {
  return fmt::format("({};{}){}", to_text(forward), to_text(backward), kOverlap);
}

}  // namespace

std::string_view name_of(Kind kind) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](auto& entry) { return entry.first == kind; })
      ->second;
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

/// Ignores blank lines at the end; one before a row is an error. PyTorch's csv.reader treats it as
/// an idle rank, but neither its schedules nor our layouts have such a rank.
Plan parse_plan(std::string_view text, const std::string& where) {
  Plan plan;
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  std::size_t actions = 0;
  for (std::size_t line = 0; !text.empty(); ++line) {
    std::string_view rest = take_piece(text, '\n');
    if (trimmed(rest).empty())
      throw_input("blank line between two rows", fmt::format("{}:{}", where, line + 1),
                  "one row per rank, each with a stage; blank lines at the end only");
    std::vector<Action>& row = plan.rows.emplace_back();
    const auto cells = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), ',')) + 1;
    for (std::size_t column = 0; column < cells; ++column) {
      const std::string_view token = trimmed(take_piece(rest, ','));
      const ParsedCell cell = CellParser(token, {where, line, column}).parse();
      row.insert(row.end(), cell.all().begin(), cell.all().end());
      actions += cell.count;
      if (actions > kMostActions)
        throw_input(fmt::format("the schedule has more than {} actions", kMostActions), where,
                    "fewer ranks, microbatches or chunks");
    }
  }
  if (actions == 0)
    throw_input("the schedule has no actions", where, "one row of actions per rank, as in 0F0,0B0");
  return plan;
}

}  // namespace concertina
