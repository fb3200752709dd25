// The binary `concertina`; the tests' emulated device links the same program.
#include "experiments/commands/program.h"

int main(int argc, char** argv) {
  return concertina::run_program(argc, argv);
}
