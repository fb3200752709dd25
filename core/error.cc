#include "core/error.h"

#include <cerrno>
#include <cstring>

namespace concertina {
namespace {

std::string join_lines(const std::string& what, const std::string& where, const std::string& fix) {
  std::string text = what;
  if (!where.empty()) text += "\n  at: " + where;
  if (!fix.empty()) text += "\n  try: " + fix;
  return text;
}

}  // namespace

Error::Error(Exit code, std::string what, std::string where, std::string fix, int system_error)
    : std::runtime_error(join_lines(what, where, fix)),
      code_(code),
      message_(std::move(what)),
      where_(std::move(where)),
      fix_(std::move(fix)),
      system_error_(system_error) {}

void throw_input(std::string what, std::string where, std::string fix) {
  throw Error(Exit::bad_input, std::move(what), std::move(where), std::move(fix));
}

void throw_failure(std::string what, std::string where, std::string fix) {
  throw Error(Exit::failure, std::move(what), std::move(where), std::move(fix));
}

void throw_errno(std::string_view call, const std::string& path, std::string fix) {
  const int code = errno;
  throw Error(Exit::failure, fmt::format("{} failed: {}", call, std::strerror(code)), path,
              std::move(fix), code);
}

namespace detail {
void check_failed(const char* condition, const char* file, int line, std::string why) {
  throw_failure(fmt::format("internal check `{}` failed: {}", condition, why),
                fmt::format("{}:{}", file, line), "this is a bug in concertina: please report it");
}
}  // namespace detail

}  // namespace concertina
