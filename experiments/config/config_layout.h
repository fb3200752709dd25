// `parallel.layout`: a Layout from its TOML form.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>

#include "parallel/plan/layout.h"

namespace concertina {

/// Where a TOML node stands, for errors: "a.toml:3:10: parallel.layout".
using NodePlace = std::function<std::string(const toml::node&)>;

/// Throws Error{bad_input} at the first part that has a wrong shape. Whether units and microbatches
/// are covered is checked where the model is known.
Layout read_layout(const toml::node& node, const NodePlace& place);

}  // namespace concertina
