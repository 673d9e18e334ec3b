// parity-check-all: every command. `parity-check` (start.cpp) starts it for all but `video` and `gate`.
#include "cli/all_commands.hpp"

int main(int argc, char** argv) { parity::cli::run_all_commands({argv + 1, argv + argc}); }
