// expect-error: on_ranks\(\) takes the CPU executor
// needs: mpi.h
#include "ranks.hpp"

auto const exec = on_ranks(mpi::communicator(MPI_COMM_WORLD), over_ranks());
int main() {}
