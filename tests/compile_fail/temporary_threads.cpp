// expect-error: a thread executor that has a state is kept by reference and must outlive the calls
#include <attune/exec/cpu/executor.hpp>

struct my_threads {
  int count;
  int concurrency() const { return count; }
  void run(int workers, attune::worker_body body) const { attune::serial{}.run(workers, body); }
};
attune::cpu<> exec{my_threads{4}};
int main() {}
