// Muon (Jordan 2024): the step of a hidden layer's weight matrix is its orthogonalized momentum, as
// in torch.optim.Muon, but with fp32 products. Queries, keys, values and the two halves of a gated
// MLP are separate matrices, however the model stores them (Jordan found this better). All other
// tensors (embeddings, heads, norms, biases) use AdamW with the common keys. Both use the common
// weight decay. The state v of a matrix stays 0.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

constexpr float kLinear = 3.4445F, kCubic = -4.7750F, kQuintic = 2.0315F;
constexpr float kLeastNorm = 1e-7F;  // gradients below this norm count as zero

std::size_t matrix_bytes(std::int64_t rows, std::int64_t columns) {
  return align_up(static_cast<std::size_t>(rows * columns) * sizeof(float));
}

/// Approximates the nearest orthogonal matrix by the Newton-Schulz iteration X <- a X + (b A + c
/// A^2) X with A = X X^T, which drives the singular values of X to between 0.7 and 1.2 (Jordan
/// 2024, "Muon", with the coefficients of its quintic). Products run in fp32 on the backend. One
/// iteration for [m,n] with k = min(m, n) takes 4 m n k + 2 k^3 operations.
class NewtonSchulz {
 public:
  /// Creates operators for matrices [rows,columns].
  NewtonSchulz(Backend& backend, std::int64_t rows, std::int64_t columns);

  bool is_for(std::int64_t rows, std::int64_t columns) const {
    return rows == rows_ && columns == columns_;
  }
  /// Returns the number of operations in `iterations` iterations on a matrix of this size.
  static double flops(std::int64_t rows, std::int64_t columns, int iterations);
  std::size_t scratch_bytes() const;
  void attach(void* scratch);
  /// x[rows,columns] <- the result of the iteration for x / |x|. Must not allocate.
  void run(View x, int iterations) const;

 private:
  void iterate(View x) const;
  std::int64_t least() const { return std::min(rows_, columns_); }

  Backend& backend_;
  std::int64_t rows_, columns_;
  std::shared_ptr<Linear> side_, square_;  // products with X, and with its smaller square matrix
  View gram_, polynomial_, next_;
  void *side_packed_ = nullptr, *square_packed_ = nullptr;
};

// A wide matrix is multiplied from the left by a square matrix with as many rows, a tall one from
// the right by one with as many columns, so neither is transposed.
NewtonSchulz::NewtonSchulz(Backend& backend, std::int64_t rows, std::int64_t columns)
    : backend_(backend),
      rows_(rows),
      columns_(columns),
      side_(backend.linear({.rows = rows, .in = least(), .out = columns})),
      square_(backend.linear({.rows = least(), .in = least(), .out = least()})) {}

double NewtonSchulz::flops(std::int64_t rows, std::int64_t columns, int iterations) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns), k = std::min(m, n);
  return iterations * (4 * m * n * k + 2 * k * k * k);
}

std::size_t NewtonSchulz::scratch_bytes() const {
  return 2 * matrix_bytes(least(), least()) + matrix_bytes(rows_, columns_) +
         align_up(side_->packed_bytes()) + align_up(square_->packed_bytes());
}

void NewtonSchulz::attach(void* scratch) {
  auto* at = static_cast<std::byte*>(scratch);
  const auto take = [&](std::int64_t rows, std::int64_t columns) {
    const View view{at, static_cast<std::size_t>(rows * columns), DType::f32};
    at += matrix_bytes(rows, columns);
    return view;
  };
  gram_ = take(least(), least());
  polynomial_ = take(least(), least());
  next_ = take(rows_, columns_);
  side_packed_ = at;
  square_packed_ = at + align_up(side_->packed_bytes());
}

void NewtonSchulz::run(View x, int iterations) const {
  backend_.run(ScaleToUnit{.x = x, .least = kLeastNorm});
  for (int i = 0; i < iterations; ++i) iterate(x);
}

void NewtonSchulz::iterate(View x) const {
  const bool wide = rows_ <= columns_;
  if (wide) {
    backend_.run(PackWeights{.map = *side_, .weight = x, .packed = side_packed_});
    backend_.run(LinearInput{.map = *side_, .dy = x, .packed = side_packed_, .dx = gram_});
  } else {
    backend_.run(
        LinearWeight{.map = *side_, .x = x, .dy = x, .dweight = gram_, .accumulate = false});
  }
  backend_.run(PackWeights{.map = *square_, .weight = gram_, .packed = square_packed_});
  backend_.run(
      LinearForward{.map = *square_, .x = gram_, .packed = square_packed_, .y = polynomial_});
  backend_.run(Axpby{.a = kCubic, .x = gram_, .b = kQuintic, .y = polynomial_});
  if (!wide)
    backend_.run(PackWeights{.map = *side_, .weight = polynomial_, .packed = side_packed_});
  backend_.run(LinearForward{
      .map = *side_, .x = wide ? polynomial_ : x, .packed = side_packed_, .y = next_});
  backend_.run(Axpby{.a = 1, .x = next_, .b = kLinear, .y = x});
}

/// The size of one matrix of a tensor.
struct MatrixExtents {
  std::int64_t rows = 0, columns = 0;
};

bool is_one_matrix(const BucketTensor& tensor) {
  return tensor.matrices.size() == 1;
}

/// The iterations for each matrix shape, and a buffer for a matrix extracted from a tensor.
class MuonTools final : public UpdateTools {
 public:
  MuonTools(Backend& backend, std::span<const BucketTensor* const> tensors) {
    for (const BucketTensor* tensor : tensors)
      for (const std::int64_t columns : tensor->matrices) {
        const std::int64_t rows = tensor->shape[0];
        if (find(rows, columns) == nullptr)
          shapes_.push_back(std::make_unique<NewtonSchulz>(backend, rows, columns));
        if (!is_one_matrix(*tensor)) cut_ = std::max(cut_, rows * columns);
      }
  }

  std::size_t scratch_bytes() const override {
    std::size_t most = 0;
    for (const auto& shape : shapes_) most = std::max(most, shape->scratch_bytes());
    return most + cut_bytes();
  }
  void attach(void* scratch) override {
    cut_memory_ = scratch;
    for (const auto& shape : shapes_) shape->attach(static_cast<std::byte*>(scratch) + cut_bytes());
  }

  const NewtonSchulz* find(std::int64_t rows, std::int64_t columns) const {
    for (const auto& shape : shapes_)
      if (shape->is_for(rows, columns)) return shape.get();
    return nullptr;
  }
  View cut(const MatrixExtents& matrix) const {
    return {cut_memory_, static_cast<std::size_t>(matrix.rows * matrix.columns), DType::f32};
  }

 private:
  std::size_t cut_bytes() const { return align_up(static_cast<std::size_t>(cut_) * sizeof(float)); }

  std::vector<std::unique_ptr<NewtonSchulz>> shapes_;
  std::int64_t cut_ = 0;  // elements of the largest extracted matrix
  void* cut_memory_ = nullptr;
};

class MuonOptimizer final : public Optimizer {
 public:
  explicit MuonOptimizer(const OptimizerConfig& config)
      : momentum_(static_cast<float>(option<double>(config.options, "momentum"))),
        nesterov_(option<bool>(config.options, "nesterov")),
        iterations_(static_cast<int>(option<std::int64_t>(config.options, "iterations"))),
        match_adamw_(option<std::string>(config.options, "adjust_lr") == "match_rms_adamw"),
        other_lr_(option<double>(config.options, "other_lr")),
        weight_decay_(config.weight_decay),
        others_(make_optimizer("adamw", {.beta1 = config.beta1,
                                         .beta2 = config.beta2,
                                         .eps = config.eps,
                                         .weight_decay = config.weight_decay})) {}

  std::vector<std::string_view> state_names() const override { return others_->state_names(); }
  bool whole_tensors() const override { return true; }
  double update_flops(const ParameterSpec& parameter) const override {
    double flops = 0;
    for (const std::int64_t columns : parameter.matrices)
      flops += NewtonSchulz::flops(parameter.shape[0], columns, iterations_);
    return flops;
  }
  std::unique_ptr<UpdateTools> tools(Backend& backend,
                                     std::span<const BucketTensor* const> tensors) const override {
    return std::make_unique<MuonTools>(backend, tensors);
  }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    if (tensor.tensor->matrices.empty()) {
      UpdateStep other = step;
      other.lr *= other_lr_;
      return others_->update(backend, other, tensor);
    }
    add_momentum(backend, step.grad_scale, tensor.states[0], tensor.g);
    make_orthogonal(backend, tensor);
    const double kept = tensor.decay ? 1 - step.lr * weight_decay_ : 1;
    backend.run(Axpby{.a = static_cast<float>(-step.lr),
                      .x = tensor.g,
                      .b = static_cast<float>(kept),
                      .y = tensor.w});
  }

 private:
  /// Replaces g with the direction of the step before orthogonalization.
  void add_momentum(Backend& backend, float grad_scale, View m, View g) const {
    const float fresh = (1 - momentum_) * grad_scale;
    backend.run(Axpby{.a = fresh, .x = g, .b = momentum_, .y = m});
    backend.run(Axpby{.a = nesterov_ ? momentum_ : 1, .x = m, .b = nesterov_ ? fresh : 0, .y = g});
  }

  /// Returns the rate factor for a matrix [I,O], which maps x to x W. PyTorch stores it as [O,I].
  float rate_of(const MatrixExtents& matrix) const {
    const auto in = static_cast<double>(matrix.rows), out = static_cast<double>(matrix.columns);
    return static_cast<float>(match_adamw_ ? 0.2 * std::sqrt(std::max(in, out))
                                           : std::sqrt(std::max(1.0, out / in)));
  }

  void make_orthogonal(Backend& backend, const UpdatedTensor& of) const {
    const auto& tools = dynamic_cast<const MuonTools&>(*of.tools);
    const std::int64_t width = of.tensor->shape[1];
    std::int64_t first = 0;
    for (const std::int64_t columns : of.tensor->matrices) {
      const MatrixExtents matrix{of.tensor->shape[0], columns};
      const bool whole = is_one_matrix(*of.tensor);
      const View x = whole ? of.g : tools.cut(matrix);
      if (!whole) backend.run(CopyColumns{of.g, width, first, x, columns, 0, columns});
      tools.find(matrix.rows, columns)->run(x, iterations_);
      backend.run(Axpby{.a = 0, .x = x, .b = rate_of(matrix), .y = x});
      if (!whole) backend.run(CopyColumns{x, columns, 0, of.g, width, first, columns});
      first += columns;
    }
  }

  float momentum_;
  bool nesterov_;
  int iterations_;
  bool match_adamw_;
  double other_lr_, weight_decay_;
  std::unique_ptr<Optimizer> others_;
};

}  // namespace

OptimizerRule muon() {
  return {.make = [](const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<MuonOptimizer>(config);
          },
          .options = {
              {"momentum", 0.95, "decay rate of the momentum for matrices", 0, 0.9999},
              {"nesterov", true, "use Nesterov momentum"},
              {"iterations", std::int64_t{5}, "number of Newton-Schulz iterations", 1, 20},
              choice("adjust_lr", "match_rms_adamw",
                     "learning rate for matrices: scaled to match AdamW's step size, or Jordan's "
                     "original rule",
                     {"match_rms_adamw", "original"}),
              {"other_lr", 1.0,
               "AdamW learning rate for other tensors, relative to that for matrices", 0, 1000}}};
}

}  // namespace concertina::optimizer_rules
