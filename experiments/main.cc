// The main() of `concertina`; the tests also build the program with an emulated device.
#include "experiments/commands/program.h"

int main(int argc, char** argv) {
  return concertina::run_program(argc, argv);
}
