// Why a layout, or the grid or schedule that is asked for, does not fit a model and a world.
// Invariant: each fault is a value, bad input that names the config key at fault; all their texts
// are here.
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
Error no_such_cut(int units, int stages);

// Faults of `parallel.layout`: of all of it, of pipeline `p`, and of its stage `s`.
Error no_pipelines();
Error no_stages(int p, int units);
Error no_such_rank(int p, int s, int rank, int world);
Error empty_stage(int p, int s, UnitRange units);
Error units_out_of_order(int p, int s, int first, int expected);
Error units_missing(int p, int last, int units);
Error no_microbatches(const Pipeline& pipeline, int p);
Error microbatches_out_of_order(const Pipeline& pipeline, int p, int expected, int microbatches);
Error leaf_cut(const Pipeline& pipeline, int p, int leaf_microbatches);
Error microbatches_missing(int last, int microbatches);
/// `holding` ranks have a stage where `working` of `world` should.
Error too_many_work(int holding, int working, int world);
Error idle_rank(int rank, int holding, int working, int world);

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
