// A wrapper around another backend: it forwards every call, and hooks run before and after each
// kernel, for example to time kernels, move their tensors, or record what they access.
// Invariant: kernels reach the inner backend in order, with the views that the hook set.
#pragma once

#include <memory>
#include <utility>

#include "core/backend.h"

namespace concertina {

class BackendAround : public Backend {
 public:
  explicit BackendAround(Backend& inner) : inner_(inner) {}  // must outlive the wrapper
  explicit BackendAround(std::unique_ptr<Backend> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  std::string describe() const override { return inner_.describe(); }
  void require(const Precision& precision) const override { inner_.require(precision); }
  bool emulates(DType compute) const override { return inner_.emulates(compute); }
  std::shared_ptr<Linear> linear(const LinearShape& shape) override { return inner_.linear(shape); }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
    return inner_.attention(shape);
  }
  std::size_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void set_workspace(void* workspace) override { inner_.set_workspace(workspace); }
  void forget_operators() override { inner_.forget_operators(); }

  void run(const Op& op) override {
    Op own = op;
    before(own);
    const After after{*this};
    inner_.run(own);
  }

  // records_passes() and repeat() are inherited from Backend, so hooks run for every kernel.
  void forget_passes() override { inner_.forget_passes(); }
  PassCounts pass_counts() const override { return inner_.pass_counts(); }
  Memory& memory() override { return inner_.memory(); }
  KernelClock& clock() override { return inner_.clock(); }
  void synchronize() override { inner_.synchronize(); }

 protected:
  Backend& inner() const { return inner_; }

 private:
  struct After {
    BackendAround& around;
    ~After() { around.after(); }
  };

  /// Runs before `op` is issued. A hook may substitute the buffers of `op`. A kernel may read
  /// any buffer, and write to any buffer except the packed weights of a product.
  virtual void before(Op& /*op*/) {}
  virtual void after() {}

  std::unique_ptr<Backend> owned_;
  Backend& inner_;
};

}  // namespace concertina
