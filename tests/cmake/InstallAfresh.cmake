# cmake -DBUILD= -DPREFIX= [-DCMAKE=<another cmake> -DSOURCE= -DMAKE_PROGRAM=] -P this: installs into an empty prefix, so that a file no longer installed is not found there.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${PREFIX}")
if(CMAKE)  # README's plain installation, by another CMake
  file(REMOVE_RECURSE "${BUILD}")
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND "${CMAKE}" -S "${SOURCE}" -B "${BUILD}" -G Ninja "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
    -DATTUNE_BUILD_TESTS=OFF -DATTUNE_BUILD_EXAMPLES=OFF -DATTUNE_BUILD_BENCHMARKS=OFF)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
