// Why the grid or schedule that is asked for does not fit a model and a world; what is wrong with a
// layout itself, validate() says (parallel/plan/fit_layout.h).
// Invariant: each fault is a value, bad input that names the config key at fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "parallel/plan/fit_layout.h"

namespace concertina::faults {

// Faults of the request as a whole.
Error nothing_trains(int frozen, int units);
Error nobody_works(int spare, int world);
/// No grid of `limits` is what `pp` and `dp` ask for: the first reason of a list, and what fits.
Error no_such_grid(const LayoutLimits& limits, std::optional<int> pp, std::optional<int> dp,
                   const Folding& folding);

// Faults of a schedule of the registry. `needs`: describe() of it, or the rule of its chunks.
Error no_form_with_chunks(std::string_view schedule, int chunks, const std::string& rule);
Error no_form_on_layout(std::string_view schedule, const std::string& needs);
Error too_many_actions(std::int64_t actions, std::size_t most);

// Faults of a schedule file.
Error rows_do_not_divide(const std::string& path, int rows, int world);
Error file_decides(const std::string& path, const std::string& key, int given, int is);
Error other_microbatches(const std::string& path, int own, int of_step, int replicas);
Error too_few_units(const std::string& path, int stages, int units);

}  // namespace concertina::faults
