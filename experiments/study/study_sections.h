// The tables of a study's file that say how its trials are chosen, ended and launched.
#pragma once

#include "experiments/study/study_spec.h"
#include "io/toml_reader.h"

namespace concertina {

/// [search], [stop] and [launch]. Throws Error{bad_input} with the place of what is wrong.
SearchSection read_search(const TomlSource& source, const toml::node& node);
StopSection read_stop(const TomlSource& source, const toml::node& node);
LaunchSection read_launch(const TomlSource& source, const toml::node& node);

}  // namespace concertina
