// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Shared libraries that hide their symbols have a pool of threads each, until one lends its pool to the other.
#include <dirent.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <attune/threads/pool_functions.hpp>

namespace {

/// Threads of this process.
int threads() {
  int n = 0;
  if (DIR* const tasks = opendir("/proc/self/task")) {
    while (dirent const* const e = readdir(tasks)) n += e->d_name[0] != '.';
    closedir(tasks);
  }
  return n;
}

struct library {
  explicit library(char const* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE_MESSAGE(handle, dlerror());
    attend = function<float()>("attend");
    lend_pool = function<attune::pool_functions const*()>("lend_pool");
    borrow_pool = function<void(attune::pool_functions const*)>("borrow_pool");
  }
  ~library() { dlclose(handle); }
  template <class F>
  F* function(char const* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }

  void* handle;
  float (*attend)();
  attune::pool_functions const* (*lend_pool)();
  void (*borrow_pool)(attune::pool_functions const*);
};

constexpr int asked_for = 4;  // threads of a call of `attend`, of which the caller is one

TEST_CASE("libraries that hide their symbols have a pool each, and are unloaded with it") {
  int const before = threads();
  {
    library const a(POOL_LIBRARY_A), b(POOL_LIBRARY_B);
    CHECK(a.attend() == b.attend());
    CHECK(threads() == before + 2 * (asked_for - 1));
  }
  CHECK(threads() == before);
}

TEST_CASE("a library's pool, lent to another, serves both") {
  int const before = threads();
  {
    library const a(POOL_LIBRARY_A), b(POOL_LIBRARY_B);
    float const alone = b.attend();
    int const own = threads();
    CHECK(own == before + asked_for - 1);
    a.borrow_pool(b.lend_pool());
    CHECK(a.attend() == alone);
    CHECK(threads() == own);
    a.borrow_pool(nullptr);
    CHECK(a.attend() == alone);
    CHECK(threads() == own + asked_for - 1);
  }
  CHECK(threads() == before);
}

TEST_CASE("a pool that cannot be used is refused") {
  attune::pool_functions of_the_future{2, [] { return 1; }, [](int, void (*)(void const*, int), void const*) {}},
      none{};
  CHECK_THROWS_WITH_AS(attune::use_pool(&of_the_future), doctest::Contains("pool->version"), attune::error);
  CHECK_THROWS_WITH_AS(attune::use_pool(&none), doctest::Contains("function that is missing"), attune::error);
}

}  // namespace
