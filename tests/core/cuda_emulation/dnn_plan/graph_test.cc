// Evaluates the graphs given to cuDNN, each operation by its definition in fp64 on operands laid
// out as in the backend, and compares the results with the oracle. Does not need cuDNN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/cuda/dnn/graph.h"
#include "tests/buffer.h"
#include "tests/oracle_backend.h"

namespace concertina::cuda {
namespace {

using Four = DnnGraph::Four;
using Operand = DnnGraph::Operand;
using Operation = DnnGraph::Operation;

class Interpreter {
 public:
  /// `stored` gives the position of element [0,0,0,0] of each stored tensor.
  Interpreter(const DnnGraph& graph, const std::map<DnnGraph::Tensor, double*>& stored) {
    for (const Operand& operand : graph.operands()) {
      operands_[operand.number] = &operand;
      std::vector<double>& own = own_[operand.number];
      std::size_t count = 1;
      for (int i = 0; i < 4; ++i) count *= static_cast<std::size_t>(operand.dims[i]);
      if (operand.kind == Operand::Kind::passed) own.assign(count, std::nan(""));
      if (operand.kind == Operand::Kind::value) own.assign(1, operand.value);
      memory_[operand.number] =
          operand.kind == Operand::Kind::stored ? stored.at(operand.number) : own.data();
    }
    for (const Operation& operation : graph.operations()) run(operation);
  }

 private:
  static std::int64_t offset(const Operand& operand, const Four& at) {
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += operand.dims[i] == 1 ? 0 : at[i] * operand.strides[i];
    return sum;
  }
  double& element(DnnGraph::Tensor number, const Four& at) {
    return memory_.at(number)[offset(*operands_.at(number), at)];
  }
  void over(const Four& dims, const std::function<void(const Four&)>& visit) {
    Four at;
    for (at[0] = 0; at[0] < dims[0]; ++at[0])
      for (at[1] = 0; at[1] < dims[1]; ++at[1])
        for (at[2] = 0; at[2] < dims[2]; ++at[2])
          for (at[3] = 0; at[3] < dims[3]; ++at[3]) visit(at);
  }

  double pointwise(const Operation& op, const Four& at) {
    const double x = element(op.x, at);
    const double b = op.b == DnnGraph::kNone ? 0 : element(op.b, at);
    switch (op.mode) {
      case CUDNN_POINTWISE_MUL:
        return x * b;
      case CUDNN_POINTWISE_ADD:
        return x + b;
      case CUDNN_POINTWISE_SUB:
        return x - b;
      case CUDNN_POINTWISE_DIV:
        return x / b;
      case CUDNN_POINTWISE_EXP:
        return std::exp(x);
      case CUDNN_POINTWISE_LOG:
        return std::log(x);
      case CUDNN_POINTWISE_CMP_GE:
        return x >= b ? 1 : 0;
      case CUDNN_POINTWISE_CMP_GT:
        return x > b ? 1 : 0;
      case CUDNN_POINTWISE_BINARY_SELECT:
        return element(op.t, at) != 0 ? x : b;
      default:
        ADD_FAILURE() << "mode " << op.mode;
        return 0;
    }
  }
  double product(const Operation& op, const Four& at) {
    double sum = 0;
    for (std::int64_t k = 0; k < operands_.at(op.x)->dims[3]; ++k)
      sum += element(op.x, {at[0], at[1], at[2], k}) * element(op.b, {at[0], at[1], k, at[3]});
    return sum;
  }
  void reduce(const Operation& op) {
    const bool max = op.how == CUDNN_REDUCE_TENSOR_MAX;
    over(operands_.at(op.y)->dims,
         [&](const Four& at) { element(op.y, at) = max ? -INFINITY : 0; });
    over(operands_.at(op.x)->dims, [&](const Four& at) {
      double& y = element(op.y, at);
      y = max ? std::max(y, element(op.x, at)) : y + element(op.x, at);
    });
  }
  void run(const Operation& op) {
    if (op.kind == Operation::Kind::reduction) return reduce(op);
    const Operand& y = *operands_.at(op.y);
    over(y.dims, [&](const Four& at) {
      switch (op.kind) {
        case Operation::Kind::index:
          element(op.y, at) = static_cast<double>(at[op.axis]);
          break;
        case Operation::Kind::matmul:
          element(op.y, at) = product(op, at);
          break;
        case Operation::Kind::reshape:
          break;
        default:
          element(op.y, at) = pointwise(op, at);
      }
    });
    if (op.kind == Operation::Kind::reshape) memory_[op.y] = memory_.at(op.x);  // another view
  }

  std::map<DnnGraph::Tensor, const Operand*> operands_;
  std::map<DnnGraph::Tensor, std::vector<double>> own_;
  std::map<DnnGraph::Tensor, double*> memory_;
};

std::vector<double> doubles(const Buffer& buffer) {
  const std::vector<float> values = buffer.values();
  return {values.begin(), values.end()};
}
void expect_equal(const std::vector<double>& got, const Buffer& expected, const char* name) {
  EXPECT_LE(relative_error(got, doubles(expected)), 1e-5) << name;
}

TEST(DnnGraphTest, BothGraphsComputeWhatTheOracleDoes) {
  for (AttentionShape s : {AttentionShape{2, 13, 3, 8},
                           {1, 7, 1, 24},
                           {3, 2, 2, 16},
                           {2, 9, 3, 8, DType::f32, 0, false}}) {
    const std::int64_t rows = s.samples * s.tokens, C = s.heads * s.head_dim;
    Data data(5);
    const Buffer qkv = data.normal(rows * 3 * C), dy = data.normal(rows * C);
    const Buffer y(dy.size()), dqkv(qkv.size()), lse(static_cast<std::size_t>(rows * s.heads));
    const auto oracle = make_oracle_backend();
    const auto attention = oracle->attention(s);
    oracle->run(AttentionForward{*attention, qkv.view(), {}, y.view(), lse.view()});
    oracle->run(AttentionBackward{
        *attention, dy.view(), qkv.view(), {}, y.view(), lse.view(), dqkv.view()});

    std::vector<double> in = doubles(qkv), out(y.size()), sums(lse.size());
    double* const q = in.data();
    Interpreter(attention_graph(s),
                {{kQ, q}, {kK, q + C}, {kV, q + 2 * C}, {kY, out.data()}, {kLse, sums.data()}});
    expect_equal(out, y, "y");
    expect_equal(sums, lse, "lse");

    std::vector<double> grad = doubles(dy), delta(lse.size()), back(qkv.size());
    double* const dq = back.data();
    Interpreter(attention_gradient_graph(s), {{kQ, q},
                                              {kK, q + C},
                                              {kV, q + 2 * C},
                                              {kY, out.data()},
                                              {kLse, sums.data()},
                                              {kDy, grad.data()},
                                              {kDelta, delta.data()},
                                              {kDq, dq},
                                              {kDk, dq + C},
                                              {kDv, dq + 2 * C}});
    expect_equal(back, dqkv, "dqkv");
  }
}

}  // namespace
}  // namespace concertina::cuda
