// The program `concertina` without its main().
#pragma once

namespace concertina {

/// Finds the subcommand that the arguments name, runs it, and turns an Error into a message on
/// stderr and an exit code (README, "Exit codes").
int run_program(int argc, char** argv);

}  // namespace concertina
