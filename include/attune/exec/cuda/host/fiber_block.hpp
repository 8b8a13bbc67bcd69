// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   fiber_block block(shared_bytes);
//   block.run(warps, seed, [&](int warp) { ... });
//
// The warps of a block as fibers on one thread of the host. They take turns at random, copies land late, and barriers
// are real. The same seed gives the same schedule.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ucontext.h>

#include <attune/core/error.hpp>

namespace attune::testing {

/// A block of warps, and its shared memory. Warps see it through fiber_warp.
class fiber_block {
 public:
  /// Shared memory of `bytes`, aligned to 1,024; every byte is 0xff, which makes every 16-bit number and float a NaN.
  explicit fiber_block(std::size_t bytes) : memory_(bytes + 1024, 0xff) {
    std::size_t space = memory_.size();
    void* first = memory_.data();
    shared_ = static_cast<unsigned char*>(std::align(1024, bytes, first, space));
  }
  fiber_block(fiber_block const&) = delete;
  fiber_block& operator=(fiber_block const&) = delete;

  /// The first byte of shared memory.
  unsigned char* shared() { return shared_; }
  /// How often a warp gave way to another, over all runs.
  long switches() const { return switches_; }
  /// Why the last run stopped before its warps ended; empty if they ended.
  std::string const& stuck() const { return stuck_; }
  /// The warp that runs.
  int current() const { return int(now_); }
  /// The block that runs on this thread.
  static fiber_block& here() {
    if (here_ == nullptr)
      throw error("fiber_warp", "the block", "called outside of a fiber_block", "call it from fiber_block::run");
    return *here_;
  }

  /// Runs program(w) for every warp w < warps until all have ended, or until none can go on. Then stuck() says why, and
  /// what the warps hold on their stacks is not destroyed. An exception of a warp ends the run and is thrown again.
  /// Errors: attune::error for warps < 1.
  void run(int warps, unsigned seed, std::function<void(int)> const& program) {
    if (warps < 1) throw error("fiber_block::run", "warps", std::to_string(warps), "at least 1");
    fiber_block* const outer = std::exchange(here_, this);
    random_.seed(seed);
    warps_.clear();
    bulks_.clear();
    barriers_.clear();
    stuck_.clear();
    failure_ = nullptr;
    either_next_ = either_ = false;
    program_ = &program;
    for (int w = 0; w < warps; ++w) {
      warps_.push_back(std::make_unique<warp>());
      warp& x = *warps_.back();
      x.stack.resize(stack_bytes);
      getcontext(&x.context);
      x.context.uc_stack.ss_sp = x.stack.data();
      x.context.uc_stack.ss_size = x.stack.size();
      x.context.uc_link = &scheduler_;
      makecontext(&x.context, reinterpret_cast<void (*)()>(&fiber_block::enter), 1, w);
    }
    while (failure_ == nullptr && step()) {
    }
    here_ = outer;
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

  // fiber_warp calls the rest.

  /// Gives way to another warp, once in 8 calls.
  void maybe_yield() {
    if (random_() % 8 == 0) yield();
  }
  /// Issues a copy of 16 bytes; nullptr: zeros. The bytes of the target are lost at once.
  void copy(unsigned char* to, void const* from) {
    pending p{to, std::vector<unsigned char>(16)};
    if (from != nullptr) std::memcpy(p.data.data(), from, 16);
    std::memset(to, 0xff, 16);
    mine().open.push_back(std::move(p));
  }
  /// Closes the group of copies of this warp.
  void commit() { mine().groups.push_back(std::exchange(mine().open, {})); }
  /// Waits until at most `left` groups of this warp are under way.
  void wait(std::size_t left) {
    while (mine().groups.size() > left) land(mine());
    maybe_yield();
  }
  /// Waits for all warps; true if one of them brought true.
  bool sync(bool x) {
    either_next_ = either_next_ || x;
    mine().at_barrier = true;
    yield();
    return either_;
  }
  /// A barrier in shared memory. An older barrier there is forgotten.
  void make_barrier(unsigned char const* at, int arrivals) { barriers_[at] = {arrivals, arrivals, 0, 0}; }
  /// Arrives, and promises `bytes` of bulk copies.
  void arrive(unsigned char const* at, long bytes) {
    barrier& b = barrier_at(at);
    b.bytes += bytes;
    --b.pending;
    b.settle();
    maybe_yield();
  }
  /// Waits for the end of the phase of this parity.
  void wait_barrier(unsigned char const* at, int parity) {
    maybe_yield();
    barrier_at(at);
    if (passed(at, parity)) return;
    mine().waits_for = at;
    mine().parity = parity;
    yield();
  }
  /// Issues a copy that the barrier counts. The bytes of the target are lost at once.
  void copy_bulk(unsigned char* to, void const* from, std::size_t bytes, unsigned char const* at) {
    barrier_at(at);
    pending p{to, std::vector<unsigned char>(bytes)};
    std::memcpy(p.data.data(), from, bytes);
    std::memset(to, 0xff, bytes);
    bulks_.emplace_back(std::move(p), at);
    maybe_yield();
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t(1) << 20;
  struct pending {
    unsigned char* to;
    std::vector<unsigned char> data;
    void land() const { std::memcpy(to, data.data(), data.size()); }
  };
  struct warp {
    ucontext_t context{};
    std::vector<char> stack;
    std::vector<pending> open;
    std::deque<std::vector<pending>> groups;
    bool done = false, at_barrier = false;
    unsigned char const* waits_for = nullptr;
    int parity = 0;
  };
  struct barrier {
    int arrivals, pending, phase;
    long bytes;
    void settle() {
      if (pending <= 0 && bytes == 0) ++phase, pending += arrivals;
    }
  };

  static void enter(int w) {
    fiber_block& b = *here_;
    try {
      (*b.program_)(w);
    } catch (...) {
      b.failure_ = std::current_exception();
    }
    b.warps_[std::size_t(w)]->done = true;
  }
  warp& mine() { return *warps_[now_]; }
  void yield() {
    ++switches_;
    swapcontext(&mine().context, &scheduler_);
  }
  static void land(warp& w) {
    for (pending const& p : w.groups.front()) p.land();
    w.groups.pop_front();
  }
  barrier& barrier_at(unsigned char const* at) {
    auto const found = barriers_.find(at);
    if (found == barriers_.end())
      throw error("fiber_warp", "a barrier", "never made", "make_barrier, and a sync of the block after it");
    return found->second;
  }
  bool passed(unsigned char const* at, int parity) { return (barrier_at(at).phase & 1) != parity; }

  /// Lets copies land and one warp go on; false if all have ended or none can go on.
  bool step() {
    std::vector<std::size_t> ready;
    std::size_t waiting = 0, alive = 0;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      warp& x = *warps_[w];
      if (x.done) continue;
      ++alive;
      if (x.at_barrier)
        ++waiting;
      else if (x.waits_for == nullptr || passed(x.waits_for, x.parity))
        ready.push_back(w);
    }
    if (alive == 0) return false;
    if (waiting == warps_.size()) {
      for (auto& x : warps_) x->at_barrier = false;
      either_ = std::exchange(either_next_, false);
      return true;
    }
    for (auto& x : warps_)
      while (!x->groups.empty() && random_() % 8 == 0) land(*x);     // some land early
    if (!bulks_.empty() && (ready.empty() || random_() % 3 == 0)) {  // in any order
      std::size_t const n = random_() % bulks_.size();
      auto const [p, at] = std::move(bulks_[n]);
      bulks_.erase(bulks_.begin() + std::ptrdiff_t(n));
      p.land();
      barrier& b = barrier_at(at);
      b.bytes -= long(p.data.size());
      b.settle();
      return true;
    }
    if (ready.empty()) {
      stuck_ = waiting == alive ? "a warp ended, and the others wait at a barrier of the block"
                                : "every warp waits for a barrier that nobody opens";
      return false;
    }
    now_ = ready[random_() % ready.size()];
    mine().waits_for = nullptr;
    swapcontext(&scheduler_, &mine().context);
    return true;
  }

  static inline thread_local fiber_block* here_ = nullptr;
  std::vector<unsigned char> memory_;
  unsigned char* shared_ = nullptr;
  std::vector<std::unique_ptr<warp>> warps_;
  std::vector<std::pair<pending, unsigned char const*>> bulks_;
  std::map<unsigned char const*, barrier> barriers_;
  std::function<void(int)> const* program_ = nullptr;
  std::exception_ptr failure_;
  std::string stuck_;
  ucontext_t scheduler_{};
  std::mt19937 random_;
  std::size_t now_ = 0;
  long switches_ = 0;
  bool either_next_ = false, either_ = false;
};

}  // namespace attune::testing
