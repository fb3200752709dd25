// Helpers for tests that expect errors, and for parts of texts.
#pragma once

#include <gtest/gtest.h>

#include <source_location>
#include <string_view>

#include "core/error.h"

namespace concertina {

/// Returns the Error that `body` throws; the test fails if it throws none.
template <class Body>
Error thrown_by(Body body, std::source_location where = std::source_location::current()) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << "no error";
  return Error(Exit::ok, "", "", "");
}

/// Returns the bad-input error that `body` throws; the test fails if there is none, or another.
template <class Body>
Error input_error(Body body, std::source_location where = std::source_location::current()) {
  const Error error = thrown_by(body, where);
  EXPECT_EQ(error.code(), Exit::bad_input) << error.what();
  return error;
}

inline void expect_has(std::string_view text, std::string_view part,
                       std::source_location where = std::source_location::current()) {
  if (text.find(part) == std::string_view::npos)
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "'" << part << "' is not in: " << text;
}

}  // namespace concertina

#define EXPECT_ERROR(call, part) \
  ::concertina::expect_has(::concertina::thrown_by([&] { (void)(call); }).what(), part)
