// expect-error: on_ranks\(\) computes with cpu<float> or cpu<double>
// needs: mpi.h
#include "ranks.hpp"

auto const exec = on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu<bfloat16>{});
int main() {}
