// `parallel.layout`: a Layout from its TOML form.
#pragma once

#include "io/toml_reader.h"
#include "parallel/plan/layout.h"

namespace concertina {

/// Throws Error{bad_input} at the first part that has a wrong shape. Whether units and microbatches
/// are covered is checked where the model is known.
Layout read_layout(const toml::node& node, const TomlSource& source);

}  // namespace concertina
