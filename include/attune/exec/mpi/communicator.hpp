// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   mpi::communicator ranks(MPI_COMM_WORLD);   mpi::exchange step(ranks);
//   step.receive(into, left);   step.send(from, right);   compute();   step.wait();
//
// attune's own communicator: messages of any size that are in flight while a rank computes, and sums whose bits do not
// depend on the network.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::mpi {

/// Numbers that may travel as bytes. All ranks must represent them in the same way.
template <class T>
concept Sendable = std::is_trivially_copyable_v<T>;

/// A duplicate of an MPI communicator: attune's messages never meet the program's. Copies share the duplicate. The last
/// copy frees it, unless MPI is finalized by then. Every function of this class is called by the thread that
/// initialized MPI, and, except rank() and size(), by all ranks in the same order. An error of MPI itself, such as a
/// lost rank, ends the program on all ranks: the handler of errors here is MPI_ERRORS_ARE_FATAL, whatever the original
/// has.
class communicator {
 public:
  /// More bytes than this travel as several messages: MPI counts with int.
  static constexpr std::size_t default_message = std::size_t(1) << 30;

  /// Duplicates `from`; all its ranks call it. Throws attune::error if MPI is not initialized for threads
  /// (MPI_Init_thread with at least MPI_THREAD_FUNNELED), if this thread did not initialize it, or if `from` has two
  /// groups of ranks. `largest_message`: in bytes, from 1 to 2^31 - 1.
  explicit communicator(MPI_Comm from, std::size_t largest_message = default_message)
      : largest_message_(largest_message) {
    check_environment();
    if (from == MPI_COMM_NULL)
      throw error("mpi::communicator", "from", "the value MPI_COMM_NULL", "a communicator that has this rank");
    int between_groups = 0;
    MPI_Comm_test_inter(from, &between_groups);
    if (between_groups != 0)
      throw error("mpi::communicator", "from", "two groups of ranks (an intercommunicator)",
                  "one group: merge them with MPI_Intercomm_merge");
    MPI_Comm copy = MPI_COMM_NULL;
    if (MPI_Comm_dup(from, &copy) != MPI_SUCCESS)
      throw error("mpi::communicator", "from", "no duplicate (MPI_Comm_dup failed)", "a communicator in working order");
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_ARE_FATAL);
    shared_ = std::make_shared<shared>(copy);
    MPI_Comm_rank(copy, &rank_);
    MPI_Comm_size(copy, &size_);
    // Compared on all ranks: messages are cut in the same places.
    constexpr std::size_t most = 0x7fffffff;
    auto const bytes = static_cast<long long>((std::min)(largest_message, most + 1));
    long long const least = lowest(bytes), greatest = -lowest(-bytes);
    if (least != greatest)
      throw error("mpi::communicator", "largest_message",
                  attune::detail::text("several values on the ranks, from ", least, " to ", greatest),
                  "one value on all ranks");
    if (largest_message == 0 || largest_message > most)
      throw error("mpi::communicator", "largest_message", attune::detail::text("the value ", largest_message),
                  "a number of bytes from 1 to 2^31 - 1");
  }

  /// The number of this rank.
  int rank() const { return rank_; }
  /// The number of ranks.
  int size() const { return size_; }
  /// The largest message in bytes.
  std::size_t largest_message() const { return largest_message_; }
  /// The duplicate. It lives as long as this object or a copy.
  MPI_Comm handle() const { return shared_->handle; }
  /// Seconds that this rank has waited for others, in all exchanges and collective functions of this duplicate.
  double seconds_waited() const { return shared_->waited; }

  /// The smallest of the ranks' numbers, on every rank.
  long long lowest(long long number) const {
    timer const time(*this);
    long long least = number;
    MPI_Allreduce(&number, &least, 1, MPI_LONG_LONG, MPI_MIN, handle());
    return least;
  }

  /// Copies the numbers of rank `root` to all ranks. The spans have the same size everywhere.
  template <Sendable T>
  void broadcast(std::span<T> numbers, int root) const {
    timer const time(*this);
    auto const bytes = std::as_writable_bytes(numbers);
    for (std::size_t done = 0; done < bytes.size(); done += largest_message_)
      MPI_Bcast(bytes.data() + done, int((std::min)(largest_message_, bytes.size() - done)), MPI_BYTE, root, handle());
  }

  /// The numbers of all ranks, one after another in the order of the ranks. counts[r]: how many rank r gives. `all` has
  /// room for all of them.
  template <Sendable T>
  void gather_to_all(std::span<T const> mine, std::span<std::size_t const> counts, std::span<T> all) const;

  /// Replaces x[n] on every rank by f(... f(f(x0[n], x1[n]), x2[n]) ..., xR[n]), where xr is the span of rank r. The
  /// order does not depend on the network or on the size, so equal inputs give equal bits. All ranks get the same bits.
  /// Each rank receives about 2 n numbers and stores 2 n more (n: the size), in 2 R messages.
  template <Sendable T, class F>
  void combine(std::span<T> x, F const& f) const;

  /// The sum over the ranks, on every rank, added in the order of the ranks.
  template <Sendable T>
  void sum(std::span<T> x) const {
    combine(x, [](T const& a, T const& b) { return T(a + b); });
  }

 private:
  friend class exchange;
  struct shared {
    MPI_Comm handle;
    double waited = 0;
    explicit shared(MPI_Comm h) : handle(h) {}
    shared(shared const&) = delete;
    shared& operator=(shared const&) = delete;
    ~shared() {
      int finalized = 0;
      MPI_Finalized(&finalized);
      if (finalized == 0) MPI_Comm_free(&handle);
    }
  };
  struct timer {
    explicit timer(communicator const& c) : to(c.shared_->waited), start(MPI_Wtime()) {}
    timer(timer const&) = delete;
    timer& operator=(timer const&) = delete;
    ~timer() { to += MPI_Wtime() - start; }
    double& to;
    double start;
  };

  static void check_environment() {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized == 0 || finalized != 0)
      throw error("mpi::communicator", "MPI", initialized == 0 ? "no initialization yet" : "been finalized",
                  "MPI between MPI_Init_thread and MPI_Finalize");
    int level = MPI_THREAD_SINGLE, main_thread = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED)
      throw error("mpi::communicator", "MPI", "the thread level MPI_THREAD_SINGLE",
                  "at least MPI_THREAD_FUNNELED: call MPI_Init_thread instead of MPI_Init");
    MPI_Is_thread_main(&main_thread);
    if (level == MPI_THREAD_FUNNELED && main_thread == 0)
      throw error("mpi::communicator", "MPI", "another main thread",
                  "a call from the thread that initialized MPI: its level is MPI_THREAD_FUNNELED");
  }

  std::shared_ptr<shared> shared_;
  std::size_t largest_message_;
  int rank_ = 0, size_ = 1;
};

/// Messages in flight: post them, compute, wait. Both ranks of a message know its size. Messages between two ranks with
/// the same tag arrive in the order in which they are posted. A message without bytes is not sent.
///
/// Between the first message and the end of wait() nothing may touch the memory that arrives, nor change the memory
/// that is sent. If an exception passes an exchange, its destructor waits: memory stays valid while MPI uses it. So
/// that no rank waits forever, post all messages of a step before you run code that may throw, and run such code in
/// `failures` (exec/mpi/agree.hpp) if further steps follow.
class exchange {
 public:
  /// No message yet.
  explicit exchange(communicator const& ranks) : ranks_(ranks) {}
  exchange(exchange const&) = delete;
  exchange& operator=(exchange const&) = delete;
  ~exchange() { wait(); }

  /// Begins to send to a rank, possibly this one. The memory must not change before wait() returns.
  template <Sendable T>
  void send(std::span<T const> numbers, int to, int tag = 0) {
    each_part(std::as_bytes(numbers), [&](auto part, MPI_Request& request) {
      MPI_Isend(part.data(), int(part.size()), MPI_BYTE, to, tag, ranks_.handle(), &request);
    });
  }
  /// The same for numbers that the caller may change.
  template <Sendable T>
    requires(!std::is_const_v<T>)
  void send(std::span<T> numbers, int to, int tag = 0) {
    send(std::span<T const>(numbers), to, tag);
  }
  /// Begins to receive from a rank, possibly this one.
  template <Sendable T>
  void receive(std::span<T> numbers, int from, int tag = 0) {
    each_part(std::as_writable_bytes(numbers), [&](auto part, MPI_Request& request) {
      MPI_Irecv(part.data(), int(part.size()), MPI_BYTE, from, tag, ranks_.handle(), &request);
    });
  }

  /// Lets MPI work on the messages. True if all have arrived and left. Many MPI libraries move large messages only
  /// during calls of MPI, so call it between pieces of a long computation.
  bool progress() {
    int done = 1;
    if (!requests_.empty()) MPI_Testall(int(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) requests_.clear();
    return done != 0;
  }
  /// Waits until all messages have arrived and left. The exchange can then be used again.
  void wait() {
    if (requests_.empty()) return;
    communicator::timer const time(ranks_);
    MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }

 private:
  template <class Bytes, class Post>
  void each_part(Bytes bytes, Post const& post) {
    std::size_t const most = ranks_.largest_message();
    requests_.reserve(requests_.size() + (bytes.size() + most - 1) / most);  // so that no posted request is lost
    for (std::size_t done = 0; done < bytes.size(); done += most) {
      MPI_Request request = MPI_REQUEST_NULL;
      post(bytes.subspan(done, (std::min)(most, bytes.size() - done)), request);
      requests_.push_back(request);
    }
  }

  communicator ranks_;
  std::vector<MPI_Request> requests_;
};

template <Sendable T>
void communicator::gather_to_all(std::span<T const> mine, std::span<std::size_t const> counts, std::span<T> all) const {
  if (counts.size() != std::size_t(size_) || counts[std::size_t(rank_)] != mine.size())
    throw error("mpi::communicator::gather_to_all", "counts", attune::detail::text(counts.size(), " numbers"),
                attune::detail::text("one for each of the ", size_, " ranks, with ", mine.size(), " for this one"));
  std::size_t total = 0;
  for (std::size_t const n : counts) total += n;
  if (all.size() != total)
    throw error("mpi::communicator::gather_to_all", "all", attune::detail::text("room for ", all.size()),
                attune::detail::text("room for ", total, ", the sum of the counts"));
  exchange messages(*this);
  std::size_t at = 0;
  for (int r = 0; r < size_; ++r) {
    auto const part = all.subspan(at, counts[std::size_t(r)]);
    if (r == rank_)
      std::copy(mine.begin(), mine.end(), part.begin());
    else
      messages.receive(part, r);
    at += part.size();
  }
  for (int n = 1; n < size_; ++n) messages.send(mine, (rank_ + n) % size_);
  messages.wait();
}

template <Sendable T, class F>
void communicator::combine(std::span<T> x, F const& f) const {
  if (size_ == 1) return;
  auto const ranks = std::size_t(size_), me = std::size_t(rank_);
  // Rank r combines part r and gives it to all.
  auto const start = [&](std::size_t r) { return x.size() / ranks * r + (std::min)(r, x.size() % ranks); };
  std::vector<std::size_t> counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) counts[r] = start(r + 1) - start(r);
  std::vector<T> parts(counts[me] * ranks);
  auto const part_of = [&](std::size_t r) { return std::span<T>(parts).subspan(r * counts[me], counts[me]); };
  {
    exchange messages(*this);
    for (std::size_t r = 0; r < ranks; ++r)
      if (r != me) messages.receive(part_of(r), int(r));
    for (std::size_t r = 0; r < ranks; ++r)
      if (r != me) messages.send(x.subspan(start(r), counts[r]), int(r));
    std::copy_n(x.begin() + std::ptrdiff_t(start(me)), counts[me], part_of(me).begin());
    messages.wait();
  }
  for (std::size_t r = 1; r < ranks; ++r)
    for (std::size_t n = 0; n < counts[me]; ++n) parts[n] = f(parts[n], parts[r * counts[me] + n]);
  gather_to_all(std::span<T const>(parts).first(counts[me]), std::span<std::size_t const>(counts), x);
}

}  // namespace attune::mpi
