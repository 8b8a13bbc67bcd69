# attune_dev_flags: how attune compiles its own tests, examples and benchmarks. Never part of a library target:
# warnings and -march are the user's choice.
add_library(attune_dev_flags INTERFACE)
target_compile_options(attune_dev_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(ATTUNE_WERROR)
  target_compile_options(attune_dev_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105593: intrinsics of AVX-512 trip these wherever they are inlined. attune's headers exempt themselves
  # (ATTUNE_INTRINSICS_BEGIN); Eigen does not, and a precompiled header forgets pragmas. tests/portability has them on.
  target_compile_options(attune_dev_flags INTERFACE -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collect garbage from 1 GB on, not from 128 MB: files of many operators take a tenth less time.
  target_compile_options(attune_dev_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>")
endif()
if(ATTUNE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native ATTUNE_HAS_MARCH_NATIVE)
  if(ATTUNE_HAS_MARCH_NATIVE)
    target_compile_options(attune_dev_flags INTERFACE -march=native)
  endif()
endif()
