// Optimizer kernels.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

/// Weights, optimizer state and gradients.
struct Weights {
  Weights(Data& data, std::int64_t count, bool fresh)
      : w(data.normal(count)), m(data.normal(count)), v(data.normal(count)), g(data.normal(count)) {
    for (std::size_t i = 0; i < v.size(); ++i) v.data()[i] *= v.data()[i];
    // In the first step, w shows only the update.
    for (Buffer* state : {&w, &m, &v})
      for (std::size_t i = 0; fresh && i < state->size(); ++i) state->data()[i] = 0;
  }
  void keep_in(Outputs& outputs, const std::string& name) const {
    for (const auto& [what, buffer] : {std::pair(" w", &w), {" m", &m}, {" v", &v}, {" g", &g}})
      outputs.push_back(output(name + what, *buffer));
  }
  Buffer w, m, v, g;
};

Outputs run_updates(Backend& backend, Data& data, std::int64_t count, bool fresh) {
  const AdamW moments{.lr = 0.1F,
                      .beta2 = 0.95F,
                      .weight_decay = 0.3F,
                      .grad_scale = 0.7F,
                      .step = fresh ? 1 : data.size(2, 5000)};
  const Weights adamw(data, count, fresh), sgd(data, count, fresh), lion(data, count, fresh),
      lamb(data, count, false), plain(data, count, fresh);
  backend.run(AdamWUpdate{moments, adamw.w.view(), adamw.m.view(), adamw.v.view(), adamw.g.view()});
  backend.run(SgdUpdate{{.lr = 0.1F,
                         .momentum = 0.9F,
                         .fresh = fresh ? 1 : 0.6F,
                         .decay = 0.3F,
                         .grad_scale = 0.7F,
                         .nesterov = data.size(0, 1) == 1},
                        sgd.w.view(),
                        sgd.m.view(),
                        sgd.g.view()});
  backend.run(LionUpdate{{.lr = 0.1F, .decay = 0.3F, .grad_scale = 0.7F},
                         lion.w.view(),
                         lion.m.view(),
                         lion.g.view()});
  backend.run(LambUpdate{{moments}, lamb.w.view(), lamb.m.view(), lamb.v.view(), lamb.g.view()});
  // A weight of zeros has a norm of zero.
  backend.run(
      LambUpdate{{moments, fresh}, plain.w.view(), plain.m.view(), plain.v.view(), plain.g.view()});
  backend.synchronize();
  Outputs outputs;
  adamw.keep_in(outputs, "adamw");
  sgd.keep_in(outputs, "sgd");
  lion.keep_in(outputs, "lion");
  lamb.keep_in(outputs, "lamb");
  plain.keep_in(outputs, "lamb without a ratio");
  return outputs;
}

Outputs run_matrices(Backend& backend, Data& data, std::int64_t count) {
  const Buffer unit = data.normal(count), over = data.normal(count);
  backend.run(ScaleToUnit{unit.view(), 1e-7F});
  backend.run(ScaleToUnit{over.view(), 1e6F});
  const Buffer sparse = data.normal(count), kept = data.normal(count);
  backend.run(Shrink{sparse.view(), 0.5F});
  backend.run(KeepZeros{sparse.view(), kept.view()});
  const std::int64_t rows = data.size(1, 40), columns = data.size(1, 30);
  const std::int64_t before = data.size(0, 9), after = data.size(0, 9), from = data.size(0, 9);
  const Buffer wide = data.normal(rows * (before + columns + after)),
               narrow = data.normal(rows * (from + columns));
  backend.run(CopyColumns{.x = narrow.view(),
                          .x_columns = from + columns,
                          .first_x = from,
                          .y = wide.view(),
                          .y_columns = before + columns + after,
                          .first_y = before,
                          .columns = columns});
  backend.synchronize();
  return {output("unit", unit, 1 / std::sqrt(static_cast<double>(count))), output("least", over),
          output("shrunk", sparse), output("kept zeros", kept), output("columns", wide)};
}

}  // namespace

void add_update_cases(CaseRound& round) {
  if (round.compute() != DType::f32) return;
  const auto add = [&](std::int64_t count, bool fresh) {
    round.add(fmt::format("updates {}{}", count, fresh ? " fresh" : ""), run_updates, count, fresh);
    round.add(fmt::format("matrices {} of optimizers", count), run_matrices, count);
  };
  add(odd_size(round.data, 10000), round.number % 2 == 0);
  if (round.number == 0) add(20'003, false);  // of several pieces
}

void update_rates(KernelRates& rates) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  std::vector<View> v;
  for (int i = 0; i < 4; ++i) v.push_back(memory.take(sizes.flat, DType::f32));
  const auto bytes = static_cast<double>(v[0].bytes());
  rates.device().run(Axpby{0, v[2], 0, v[2]});  // second moments: not negative
  rates.fused("adamw", 7 * bytes, AdamWUpdate{{.lr = 1e-4F}, v[0], v[1], v[2], v[3]});
  rates.fused("lamb", 11 * bytes, LambUpdate{{{.lr = 1e-4F}}, v[0], v[1], v[2], v[3]});
  rates.fused("scale to unit", 3 * bytes, ScaleToUnit{v[0], 1e-7F});
}

}  // namespace concertina
