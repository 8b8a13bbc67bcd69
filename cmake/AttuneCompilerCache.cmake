# ccache, where it is installed, for attune's own tests, examples and benchmarks. A clone at another path gets what this one compiled:
# paths are relative to the project's folder (CCACHE_BASEDIR), and the folder of the build is no part of the key (CCACHE_NOHASHDIR).
# Objects are found by the contents of all files that they depend on (CCACHE_DEPEND); nothing is preprocessed to look for one.
option(ATTUNE_CCACHE "Compile attune's tests, examples and benchmarks through ccache, where it is installed" ${PROJECT_IS_TOP_LEVEL})
if(NOT ATTUNE_CCACHE OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
find_program(ATTUNE_CCACHE_PROGRAM ccache)
mark_as_advanced(ATTUNE_CCACHE_PROGRAM)
if(NOT ATTUNE_CCACHE_PROGRAM)
  return()
endif()

# -march=native reads the same on every machine: what the compiler makes of it here is part of the key.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -E -x c++ /dev/null "-###" WORKING_DIRECTORY / OUTPUT_QUIET
  ERROR_VARIABLE native)  # clang's answer names the folder that it runs in
string(SHA1 native "${native}")
string(SUBSTRING "${native}" 0 12 native)

set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
  CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_NAMESPACE=attune-${native}" "${ATTUNE_CCACHE_PROGRAM}")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A precompiled header of clang names its sources by their whole paths: no other clone could use it.
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
