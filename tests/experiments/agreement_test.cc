// Ranks with different settings are rejected, all with the same message.
#include "experiments/run/agreement.h"
#include "experiments/run/verify.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cfenv>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "experiments/config/config_environment.h"
#include "experiments/predict/link_probe.h"
#include "experiments/run/text_identity.h"
#include "io/sha256.h"
#include "tests/io/io_test.h"
#include "tests/io/token_files.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// Returns each rank's message if `change(r, config)` changes the config of rank r.
std::vector<std::string> answers(int ranks, const std::function<void(int, RunConfig&)>& change) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    RunConfig config;
    change(world.rank(), config);
    std::string& answer = all[static_cast<std::size_t>(world.rank())];
    try {
      answer = agree(world, config, claims_of(config, "train", "text"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      answer = error.message();
    }
  });
  for (const std::string& answer : all) EXPECT_EQ(answer, all[0]);
  return all;
}

TEST(Agreement, PathsAndThreadsMayDiffer) {
  const auto all = answers(4, [](int rank, RunConfig& config) {
    config.run.threads = rank;
    config.run.dir = "runs" + std::to_string(rank);
    config.checkpoint.dir = config.cache.dir = "/scratch" + std::to_string(rank);
    config.data.text = {config.run.dir + "/text"};
  });
  EXPECT_NE(all[0], "");
  EXPECT_EQ(all[0].find(' '), std::string::npos) << all[0];
}

TEST(Agreement, SaysWhichRanksHaveWhat) {
  const auto all = answers(5, [](int rank, RunConfig& config) {
    if (rank >= 3) config.optimizer.lr = 0.5;
    if (rank == 1) config.optimizer.lr = 0.25;
  });
  EXPECT_EQ(all[0],
            "the ranks do not agree on optimizer.lr: 0.001 on ranks 0,2, 0.25 on rank 1, 0.5 on "
            "ranks 3-4");
}

/// Changes floating-point settings, as a library built with -ffast-math may do.
TEST(Agreement, ARankThatComputesOtherwiseIsNamed) {
  constexpr unsigned kFlush = 0x8000, kZeros = 0x0040;  // bits of MXCSR
  const std::pair<std::function<void()>, std::string> cases[] = {
      {[] { std::fesetround(FE_UPWARD); }, "rounds up"},
      {[] { std::fesetround(FE_DOWNWARD); }, "rounds down"},
      {[] { std::fesetround(FE_TOWARDZERO); }, "rounds toward zero"},
      {[] { _mm_setcsr(_mm_getcsr() | 0x6000); }, "rounds toward zero"},
      {[] { _mm_setcsr(_mm_getcsr() | kFlush); },
       "rounds to nearest, flushes denormal results to 0"},
      {[] { _mm_setcsr(_mm_getcsr() | kZeros); },
       "rounds to nearest, treats denormal operands as 0"}};
  for (const auto& [change, text] : cases) {
    const auto all = answers(3, [&](int rank, RunConfig&) {
      if (rank == 1) change();  // affects only its thread
    });
    const std::string start = "the ranks do not agree on floating-point arithmetic: ";
    const std::string odd = text + " on rank 1", others = "rounds to nearest on ranks 0,2";
    EXPECT_TRUE(all[0] == start + odd + ", " + others || all[0] == start + others + ", " + odd)
        << all[0] << "; wanted " << odd;
  }
}

/// Both ends send the same number of messages, whatever times they compute.
TEST(Agreement, ALinkIsMeasuredWhereOneEndRoundsOtherwise) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (int time = 0; time < 3; ++time)
      run_threads(2, [&](Communicator& world) {
        if (world.rank() == 1) std::fesetround(mode);
        EXPECT_GE(probe_link(world, 0, 1, 1 << 12, /*remote=*/time == 2).latency, 0);
      });
}

TEST(Agreement, AVariableOfSomeRanksIsNamed) {
  const Variables set{{"CONCERTINA__RUN__THREADS", "2"}};  // even a key that may differ
  const auto all = answers(3, [&](int rank, RunConfig& config) {
    if (rank == 0) read_environment(set, config);
  });
  EXPECT_EQ(
      all[0],
      "the ranks do not agree on CONCERTINA__RUN__THREADS: 2 on rank 0, nothing on ranks 1-2");
}

TEST(Agreement, ASetOfInstructionsThatIsNamedIsTakenOrRefused) {
  const auto named = [](const std::string& isa) {
    return answers(2, [&](int, RunConfig& config) { config.numerics.isa = isa; })[0];
  };
  EXPECT_EQ(named("baseline"), "baseline");
  ASSERT_EQ(::setenv("DNNL_MAX_CPU_ISA", "SSE41", 1), 0);
  EXPECT_EQ(named("avx2"), "not on ranks 0-1: avx2");
  EXPECT_EQ(named("auto"), "baseline");
  ::unsetenv("DNNL_MAX_CPU_ISA");
}

/// Returns the message of rank r if it reads the file `of_rank[r]` of this host.
std::string text_answer(const std::vector<std::string>& of_rank) {
  const TemporaryDirectory directory;
  for (const std::string& name : of_rank)  // all of one size; content: the name's first letter
    std::ofstream(directory.path() + "/" + name) << std::string(1000, name[0]);
  std::string answer;
  run_threads(static_cast<int>(of_rank.size()), [&](Communicator& world) {
    const std::string& name = of_rank[static_cast<std::size_t>(world.rank())];
    DataOptions options;
    options.files = {directory.path() + "/" + name};
    options.tokens_per_sample = 8;
    const auto dataset = open_dataset(options);
    std::string mine = "agreed";
    try {
      EXPECT_EQ(text_identity(world, *dataset, directory.path(), true, [] {}).whole,
                sha256_hex(std::string(1000, name[0])));
    } catch (const Error& error) {
      mine = error.message();
    }
    world.barrier();
    if (world.rank() == 0) answer = mine;
  });
  return answer;
}

// Sizes agree, and ranks on one host may get different files.
TEST(TextIdentity, IsOfTheContentThatEachRankReads) {
  EXPECT_EQ(text_answer({"a", "a", "a"}), "agreed");
  EXPECT_EQ(text_answer({"a", "a2", "a3"}), "agreed");
  EXPECT_NE(text_answer({"a", "b"}).find("rank 1 on "), std::string::npos);
  EXPECT_NE(text_answer({"a", "a2", "b", "b"}).find("rank 2 on "), std::string::npos);
}

// A token file contains its own hash, so a byte lost by a disk is found before the first step.
TEST(TextIdentity, VerifiesATokenFileThatItHasNotReadYet) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/train.tok";
  write_token_file(path, 100, sha256_hex("a tokenizer"), std::vector<std::int32_t>(1000, 7),
                   {0, 1000});
  DataOptions options;
  options.format = "tokens";
  options.files = {path};
  options.tokens_per_sample = 8;
  const auto identify = [&] {
    const auto dataset = open_dataset(options);
    run_threads(1, [&](Communicator& world) {
      text_identity(world, *dataset, directory.path() + "/run", true, [] {});
    });
  };
  identify();
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(1128).put('\x08');
  EXPECT_ERROR(identify(), "the file is damaged");
}

VerifyResult differing(const std::string& bits) {
  return {.name = bits, .first_step = 1, .buckets = {"loss"}, .bits = bits};
}

TEST(Verify, LayoutsThatDifferAlikeAreCounted) {
  const VerifyResult same{.name = "same"};
  EXPECT_EQ(differ_alike({same, same}), 0);
  EXPECT_EQ(differ_alike({same, differing("a")}), 1);
  EXPECT_EQ(differ_alike({differing("a"), differing("b"), same, differing("b")}), 2);
}

}  // namespace
}  // namespace concertina
