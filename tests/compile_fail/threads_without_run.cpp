// expect-error: a thread executor runs workers: void run.int workers, worker_body body.
#include <attune/exec/cpu/executor.hpp>

struct my_threads {
  int concurrency() const { return 2; }
  void runs(int workers, attune::worker_body body) const { attune::serial{}.run(workers, body); }
};
attune::cpu<> exec{my_threads{}};
int main() {}
