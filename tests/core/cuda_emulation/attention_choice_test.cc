// Tests which attention a backend chooses, what it then reserves, and what it reports. cuDNN's
// attention is not emulated: tests recognize it by its scratch size, and it refuses to run.
#include <gtest/gtest.h>

#include "core/cuda/backend.h"
#include "dnn.h"
#include "runtime.h"
#include "tests/errors.h"

namespace concertina {
namespace {

using cuda::AttentionBy;

// cuDNN's scratch, 2 x 2 x 2048 x 2048 x 2 bytes, exceeds what a backend has in any case.
constexpr AttentionShape kShape{2, 2048, 2, 64, DType::bf16};

std::size_t scratch(Backend& backend, const AttentionShape& shape) {
  backend.attention(shape);
  return backend.workspace_bytes();
}
std::size_t planned(AttentionBy by, const AttentionShape& shape = kShape) {
  return scratch(*cuda::make_sizing_backend(by), shape);
}
std::size_t reserved(AttentionBy by, const AttentionShape& shape = kShape) {
  return scratch(*cuda::make_cuda_backend({.attention = by}), shape);
}

class AttentionChoiceTest : public testing::Test {
 protected:
  void SetUp() override {
    own_ = planned(AttentionBy::own);
    dnn_ = planned(AttentionBy::cudnn);
    ASSERT_GT(dnn_, own_ + (std::size_t{16} << 20));
    emulation::set_dnn_problem("");
  }
  void TearDown() override {
    emulation::set_dnn_problem("no cuDNN is emulated");
    emulation::set_dnn_plan_problem("");
    emulation::set_compute_capability(9, 0);
  }
  /// Returns the message of a bad input that names the setting.
  static std::string refusal(const AttentionShape& shape = kShape) {
    try {
      reserved(AttentionBy::cudnn, shape);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      EXPECT_EQ(error.where(), "numerics.attention");
      EXPECT_FALSE(error.fix().empty());
      return error.message();
    }
    return "none";
  }

  std::size_t own_ = 0, dnn_ = 0;
};

TEST_F(AttentionChoiceTest, CudnnIsTakenWhereItIsUnlessOursIsAskedFor) {
  EXPECT_EQ(reserved(AttentionBy::automatic), dnn_);
  EXPECT_EQ(reserved(AttentionBy::cudnn), dnn_);
  EXPECT_EQ(reserved(AttentionBy::own), own_);
  EXPECT_EQ(planned(AttentionBy::automatic), dnn_);
  const auto with = cuda::make_cuda_backend({}),
             without = cuda::make_cuda_backend({.attention = AttentionBy::own});
  expect_has(with->describe(), ", cuDNN 9.99.0");
  EXPECT_EQ(without->describe().find("cuDNN"), std::string::npos) << without->describe();
  const std::shared_ptr<Attention> attention = with->attention(kShape);
  const AttentionForward forward{*attention, {}, {}, {}, {}};
  EXPECT_THROW(with->run(forward), Error);
}

TEST_F(AttentionChoiceTest, WhereThereIsNoCudnnOursIsTaken) {
  emulation::set_dnn_problem("libcudnn.so.9 cannot be loaded");
  EXPECT_EQ(reserved(AttentionBy::automatic), own_);
  EXPECT_EQ(planned(AttentionBy::automatic), own_);
  EXPECT_EQ(refusal(), "cuDNN's attention cannot be used: libcudnn.so.9 cannot be loaded");
}

TEST_F(AttentionChoiceTest, OtherGenerationsThanHopperTakeOurs) {
  for (const auto& [major, minor] : {std::pair{8, 9}, {10, 0}}) {
    emulation::set_compute_capability(major, minor);
    EXPECT_EQ(reserved(AttentionBy::automatic), own_);
    EXPECT_EQ(planned(AttentionBy::automatic), own_);
    EXPECT_EQ(refusal(),
              fmt::format("cuDNN's attention cannot be used: GPU 0 has compute capability {}.{}, "
                          "not 9.x",
                          major, minor));
  }
}

TEST_F(AttentionChoiceTest, AShapeWithoutAPlanTakesOurs) {
  emulation::set_dnn_plan_problem("no plan");
  EXPECT_EQ(reserved(AttentionBy::automatic), own_);
  EXPECT_EQ(refusal(), "no plan");
}

TEST_F(AttentionChoiceTest, WhatCudnnDoesNotTakeIsOursOrRefused) {
  for (const AttentionShape& shape : {AttentionShape{2, 2048, 2, 64, DType::f32},
                                      {2, 2048, 2, 60, DType::bf16},
                                      {2, 1, 2, 64, DType::bf16},
                                      {2, 2047, 2, 64, DType::bf16, 0, false},
                                      {2, 2048, 2, 64, DType::bf16, 1},
                                      {2, 2048, 2, 64, DType::bf16, 0, false, true},
                                      {2, 2048, 2, 64, DType::bf16, 0, true, false, true}}) {
    EXPECT_EQ(reserved(AttentionBy::automatic, shape), planned(AttentionBy::own, shape));
    expect_has(refusal(shape), "cuDNN does not support attention over ");
    EXPECT_THROW(planned(AttentionBy::cudnn, shape), Error);
  }
}

TEST_F(AttentionChoiceTest, ScratchBeyondAllMeasureIsTakenOnlyIfAskedFor) {
  const AttentionShape large{16, 8192, 12, 64, DType::bf16};  // 24 GiB
  EXPECT_EQ(reserved(AttentionBy::automatic, large), planned(AttentionBy::own, large));
  EXPECT_EQ(reserved(AttentionBy::cudnn, large), planned(AttentionBy::cudnn, large));
  EXPECT_GT(planned(AttentionBy::cudnn, large), std::size_t{24} << 30);
}

}  // namespace
}  // namespace concertina
