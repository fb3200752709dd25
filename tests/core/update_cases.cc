#include "tests/core/update_cases.h"

#include <fmt/format.h>

#include "tests/core/case_tools.h"

namespace concertina {
namespace {

/// Weights and what an optimizer knows of them; gradients.
struct Weights {
  Weights(Data& data, std::int64_t count, bool fresh)
      : w(data.normal(count)), m(data.normal(count)), v(data.normal(count)), g(data.normal(count)) {
    for (std::size_t i = 0; i < v.size(); ++i) v.data()[i] *= v.data()[i];
    // At the first step the update alone shows in w.
    for (Buffer* state : {&w, &m, &v})
      for (std::size_t i = 0; fresh && i < state->size(); ++i) state->data()[i] = 0;
  }
  void keep_in(Outputs& outputs, const std::string& name) const {
    keep(outputs, name + " w", w);
    keep(outputs, name + " m", m);
    keep(outputs, name + " v", v);
    keep(outputs, name + " g", g);
  }
  Buffer w, m, v, g;
};

Outputs run_updates(Backend& backend, unsigned seed, std::int64_t count, bool fresh) {
  Data data(seed);
  const Workspace workspace(backend);
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
  // A weight of zeros has no norm to follow.
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

Outputs run_matrices(Backend& backend, unsigned seed, std::int64_t count) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer unit = data.normal(count), over = data.normal(count);
  backend.run(ScaleToUnit{unit.view(), 1e-7F});
  backend.run(ScaleToUnit{over.view(), 1e6F});
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
  Outputs outputs;
  keep(outputs, "unit", unit, 1 / std::sqrt(static_cast<double>(count)));
  keep(outputs, "least", over);
  keep(outputs, "columns", wide);
  return outputs;
}

}  // namespace

void add_update_cases(std::vector<KernelCase>& cases, unsigned seed, std::int64_t count,
                      bool fresh) {
  cases.push_back({fmt::format("updates {}{}", count, fresh ? " fresh" : ""), 1e-5,
                   [=](Backend& backend) { return run_updates(backend, seed, count, fresh); }});
  cases.push_back({fmt::format("matrices of optimizers {}", count), 1e-5,
                   [=](Backend& backend) { return run_matrices(backend, seed, count); }});
}

}  // namespace concertina
