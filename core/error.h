// One error type for the whole program: what is wrong, where, and what would be right.
// Invariant: every failure that a user can cause or see leaves through Error; `main` prints it
// once and ends all ranks with `code()`.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace concertina {

/// Process exit codes (README, "Exit codes").
enum class Exit : int { ok = 0, failure = 1, bad_input = 2, preempted = 75 };

class Error : public std::runtime_error {
 public:
  /// `what`: one line, what is wrong. `where`: file:line:column and key, or rank and operation.
  /// `fix`: one line, what would be right; may be empty when nobody can know.
  /// `system_error`: errno of the system call that failed, 0 if none did.
  Error(Exit code, std::string what, std::string where, std::string fix, int system_error = 0);

  Exit code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& fix() const { return fix_; }
  int system_error() const { return system_error_; }

 private:
  Exit code_;
  std::string message_, where_, fix_;
  int system_error_;
};

/// The user's input is wrong: exit code 2.
[[noreturn]] void throw_input(std::string what, std::string where, std::string fix);

/// Something failed at run time (a file, a rank, a library): exit code 1.
[[noreturn]] void throw_failure(std::string what, std::string where, std::string fix = {});

/// Throws a failure with errno's text for a failed system call on `path`.
[[noreturn]] void throw_errno(std::string_view call, const std::string& path, std::string fix = {});

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string why);
}

/// A programming error, not an input error: always compiled in.
#define CONCERTINA_CHECK(condition, ...)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::concertina::detail::check_failed(#condition, __FILE__, __LINE__, \
                                         ::fmt::format(__VA_ARGS__));    \
  } while (false)

}  // namespace concertina
