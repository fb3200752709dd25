// The tables of a study's file that say what its trials differ in, and what they have in common.
// Invariant: each value passed the checks of its config key; no key is said twice.
#pragma once

#include "experiments/study/study_spec.h"
#include "io/toml_reader.h"

namespace concertina {

/// Takes seeds, [set], [override], [random], [grid], [[zip]], [[arm]] and [grown] out of `table`,
/// which is that of `root`, into a spec that has its [search]. Throws Error{bad_input} with the
/// place of what is wrong.
void read_axes(const TomlSource& source, const toml::table& root, TomlTable& table,
               StudySpec& spec);

}  // namespace concertina
