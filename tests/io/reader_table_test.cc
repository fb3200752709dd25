// The table of readers: valid cases give the expected answers, others the expected errors.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

/// Compares the pixels of "SPLIT I pixels OFF" with levels of 255; each may differ by at most OFF.
void expect_pixels(const Dataset& dataset, const std::string& question, const std::string& levels) {
  const std::size_t at = question.find(" pixels");
  const ReadSample sample =
      sample_of(dataset, {.split = question.starts_with("train") ? Split::train : Split::validation,
                          .sample = std::stoull(question.substr(question.find(' ')))});
  const std::string off = question.substr(at + 7);
  ASSERT_EQ(sample.image.size(), levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i)
    ASSERT_NEAR((sample.image[i] + 1) * 127.5, static_cast<unsigned char>(levels[i]),
                off.empty() ? 1e-3 : std::stod(off))
        << i;
}

void expect_answer(const Dataset& dataset, const std::string& line) {
  const std::size_t equal = line.find(" = "), part = line.find(" ~ ");
  const std::size_t at = std::min(equal, part);
  const std::string question = line.substr(0, at), wanted = line.substr(at + 3);
  SCOPED_TRACE(line);
  if (contains(question, " pixels")) {
    expect_pixels(dataset, question, bytes_of(wanted));
  } else if (part < equal) {
    expect_has(answer_of(dataset, question), wanted);
  } else {
    EXPECT_EQ(answer_of(dataset, question), wanted);
  }
}

class Reader : public testing::TestWithParam<ReaderCase> {};

/// Errors are reported before the first sample is read.
TEST_P(Reader, SaysWhatItsFilesHold) {
  const ReaderCase& one = GetParam();
  const auto check = [&](bool reads) {
    const CaseFolder folder(one);
    const auto dataset = folder.open();
    dataset->verify([] {});
    if (!reads) return;
    read_all(*dataset);
    for (const std::string& line : one.expected) expect_answer(*dataset, line);
  };
  for (const auto& parts : one.refusals)
    for (const std::string& part : parts) EXPECT_ERROR(check(false), part);
  if (one.refusals.empty()) check(true);
}

INSTANTIATE_TEST_SUITE_P(Of, Reader, testing::ValuesIn(reader_cases()),
                         [](const auto& one) { return one.param.test_name(); });

TEST(ReaderTable, EveryFormatHasCasesAndRefusals) {
  std::set<std::string> sound, refused;
  for (const ReaderCase& one : reader_cases())
    (one.refusals.empty() ? sound : refused).insert(one.format);
  for (const std::string_view name : names_of(dataset_formats())) {
    EXPECT_TRUE(sound.contains(std::string(name))) << "no case reads " << name;
    EXPECT_TRUE(refused.contains(std::string(name))) << "no case refuses a file of " << name;
  }
}

}  // namespace
}  // namespace concertina
