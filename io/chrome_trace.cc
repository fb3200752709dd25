#include "io/chrome_trace.h"

#include <fmt/format.h>

#include "core/error.h"
#include "io/log_lines.h"

namespace concertina {
namespace {

constexpr std::string_view kHead = R"({"displayTimeUnit":"ms","otherData":)";
constexpr std::string_view kEvents = R"(,"traceEvents":[)";
constexpr std::string_view kTail = "]}";

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Formats seconds as microseconds with three decimals.
std::string micros(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e6);
}

[[noreturn]] void throw_damaged(const std::string& path, std::size_t line) {
  throw_input("not a trace written by concertina", fmt::format("{}:{}", path, line),
              "use the unmodified trace.json from a run directory");
}

}  // namespace

ChromeTrace::ChromeTrace(const nlohmann::ordered_json& about) {
  text_.append(kHead).append(about.dump()).append(kEvents).append("\n");
}

void ChromeTrace::event(std::string_view text) {
  if (!first_) text_ += ",\n";
  first_ = false;
  text_ += text;
}

void ChromeTrace::process(int process, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process,
                    quoted(name)));
  event(fmt::format(
      R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
      process));
}

void ChromeTrace::track(int process, int track, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                    process, track, quoted(name)));
  event(fmt::format(
      R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
      process, track));
}

void ChromeTrace::slice(int process, int track, std::string_view category, std::string_view name,
                        double start, double end, std::string_view args) {
  // The end is rounded, not the duration, so that adjacent slices stay adjacent.
  const std::string ts = micros(start);
  const double duration = std::stod(micros(end)) - std::stod(ts);
  event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":{},"name":{},"ts":{},"dur":{:.3f}{}{}}})",
                    process, track, quoted(category), quoted(name), ts, duration,
                    args.empty() ? "" : R"(,"args":)", args));
}

void ChromeTrace::arrow_start(int process, int track, std::uint64_t id, double time,
                              std::string_view name) {
  event(fmt::format(R"({{"ph":"s","pid":{},"tid":{},"cat":{},"name":{},"id":{},"ts":{}}})", process,
                    track, quoted(name), quoted(name), id, micros(time)));
}

void ChromeTrace::arrow_end(int process, int track, std::uint64_t id, double time,
                            std::string_view name) {
  event(fmt::format(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"cat":{},"name":{},"id":{},"ts":{}}})",
                    process, track, quoted(name), quoted(name), id, micros(time)));
}

void ChromeTrace::counter(int process, std::string_view name, double time,
                          std::string_view values) {
  event(fmt::format(R"({{"ph":"C","pid":{},"name":{},"ts":{},"args":{}}})", process, quoted(name),
                    micros(time), values));
}

std::string ChromeTrace::finish() {
  text_.append("\n").append(kTail).append("\n");
  return std::move(text_);
}

nlohmann::json read_chrome_trace(const std::string& path,
                                 const std::function<void(const nlohmann::json&)>& see) {
  nlohmann::json about;
  std::uint64_t from = 0;
  std::size_t number = 0;
  bool ended = false;
  const auto parse = [&](std::string_view text) {
    nlohmann::json value = parse_json(text);
    if (!value.is_object()) throw_damaged(path, number);
    return value;
  };
  const auto read_line = [&](std::string_view line, bool) {
    if (++number == 1) {
      if (!line.starts_with(kHead) || !line.ends_with(kEvents)) throw_damaged(path, number);
      about = parse(line.substr(kHead.size(), line.size() - kHead.size() - kEvents.size()));
    } else if (line == kTail) {
      ended = true;
    } else if (!ended) {
      if (line.ends_with(',')) line.remove_suffix(1);
      if (!line.empty()) see(parse(line));
    }
  };
  try {
    each_line(path, from, read_line);
  } catch (const Error& error) {
    if (error.system_error() != ENOENT) throw;
    throw_input("no trace found", path,
                "use a run with log.trace above 0 that has trained at least one step");
  }
  if (!ended) throw_damaged(path, number + 1);
  return about;
}

}  // namespace concertina
