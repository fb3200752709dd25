// The error type of the whole program: what is wrong, where, and how to fix it.
// Invariant: every failure that a user can cause or see is reported as an Error. `main` prints it
// once and terminates all ranks with `code()`.
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
  /// `what` says in one line what is wrong. `where` is file:line:column and key, or rank and
  /// operation. `fix` suggests a correction in one line; it may be empty. `system_error` is the
  /// errno of the failed system call, or 0.
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

/// Throws for incorrect user input: exit code 2.
[[noreturn]] void throw_input(std::string what, std::string where, std::string fix);

/// Throws for a failure at run time (of a file, a rank, a library): exit code 1.
[[noreturn]] void throw_failure(std::string what, std::string where, std::string fix = {});

/// Throws Error{failure} with errno's text for a failed system call on `path`.
[[noreturn]] void throw_errno(std::string_view call, const std::string& path, std::string fix = {});

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string why);
}

/// Checks for a programming error, as opposed to an input error. It is always compiled in.
#define CONCERTINA_CHECK(condition, ...)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::concertina::detail::check_failed(#condition, __FILE__, __LINE__, \
                                         ::fmt::format(__VA_ARGS__));    \
  } while (false)

}  // namespace concertina
