// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The same call on attune's threads, on the calling thread alone, and on threads that belong to somebody else.
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <random>
#include <thread>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]

/// Somebody else's threads: stands for the pool of your framework.
class job_queue {
 public:
  explicit job_queue(int threads) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
  }
  ~job_queue() {
    std::unique_lock lock(guard_);
    closed_ = true;
    lock.unlock();
    wake_.notify_all();
  }
  int threads() const { return int(threads_.size()); }
  std::future<void> submit(std::function<void()> f) {
    std::packaged_task<void()> job(std::move(f));
    auto done = job.get_future();
    std::unique_lock lock(guard_);
    jobs_.push(std::move(job));
    lock.unlock();
    wake_.notify_one();
    return done;
  }

 private:
  void work() {
    for (std::unique_lock lock(guard_);;) {
      wake_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      auto job = std::move(jobs_.front());
      jobs_.pop();
      lock.unlock();
      job();
      lock.lock();
    }
  }
  std::mutex guard_;
  std::condition_variable wake_;
  std::queue<std::packaged_task<void()>> jobs_;
  bool closed_ = false;
  std::vector<std::jthread> threads_;  // joined first
};

// [snippet: own]
/// attune's tasks on the threads of a queue, beside the thread that calls.
struct on_queue {
  job_queue& queue;
  int concurrency() const { return queue.threads() + 1; }
  void run(int workers, attune::worker_body body) const {
    std::vector<std::future<void>> others;
    for (int w = 1; w < workers; ++w) others.push_back(queue.submit([body, w] { body(w); }));
    body(0);
    for (auto& other : others) other.wait();
  }
};
// [/snippet]

int main() {
  using namespace attune;
  constexpr index_t heads = 4, length = 200, width = 32;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&] {
    std::vector<float> x(std::size_t(heads * length * width));
    for (float& e : x) e = normal(random);
    return x;
  };
  auto const q = make(), k = make(), v = make();
  std::vector<float> a(q.size()), b(q.size()), c(q.size());
  shape const s{1, heads, length, width};
  tensor Q(q, s), K(k, s), V(v, s);
  tensor A(a, s), B(b, s), C(c, s);
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});

  job_queue queue(2);
  // [snippet: calls]
  forward(cpu{4}, op, {.q = Q, .k = K, .v = V}, {.out = A});         // attune's pool; cpu{}: one thread per processor
  forward(cpu{serial{}}, op, {.q = Q, .k = K, .v = V}, {.out = B});  // the calling thread alone
  on_queue const threads{queue};                                     // has a state: must outlive the calls
  forward(cpu{threads}, op, {.q = Q, .k = K, .v = V}, {.out = C});   // your own
  // [/snippet]
  std::printf("pool and serial: %s\n", a == b ? "the same bits" : "DIFFERENT");
  std::printf("serial and a queue of %d threads: %s\n", queue.threads(), b == c ? "the same bits" : "DIFFERENT");
  return a == b && b == c ? 0 : 1;
}
