// The binary `concertina`; the emulated device of the tests links the same program.
#include "experiments/commands/program.h"

int main(int argc, char** argv) {
  return concertina::run_program(argc, argv);
}
