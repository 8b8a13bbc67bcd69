# README's first call, compiled by one command each: in every standard that a compiler knows, and for targets on which nothing else is
# tested. Included by tests/CMakeLists.txt. What cannot be had is a test that is skipped, and says what is missing.

set(ATTUNE_NEWER_XSIMD "${PROJECT_SOURCE_DIR}/build/newer-xsimd/usr/include" CACHE PATH "Folder that holds xsimd/xsimd.hpp of xsimd >= 13")
set(ATTUNE_ZIG "${PROJECT_SOURCE_DIR}/build/pypi/bin/python;-m;ziglang" CACHE STRING "Command of the zig compiler")
set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
set(other_headers $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES> $<TARGET_PROPERTY:attune::boost,INTERFACE_INCLUDE_DIRECTORIES>)

# attune_add_first_call(<name> COMPILER <program> [<argument>...] [NEWER_XSIMD] [FLAGS <flag>...] [RUN [BY <program> [<argument>...]]])
# Without RUN an object file is made.
function(attune_add_first_call name)
  cmake_parse_arguments(A "NEWER_XSIMD;RUN" "" "COMPILER;FLAGS;BY" ${ARGN})
  set(missing "")
  foreach(list COMPILER BY)
    list(GET A_${list} 0 first)
    if(first)
      find_program(program "${first}" NO_CACHE)
      if(NOT program)
        set(missing "${first} not found")
      endif()
      unset(program)
    endif()
  endforeach()
  set(system_includes "")
  if(A_NEWER_XSIMD)
    set(system_includes "${ATTUNE_NEWER_XSIMD}")
    if(NOT EXISTS "${ATTUNE_NEWER_XSIMD}/xsimd/xsimd.hpp")
      set(missing "no xsimd in ${ATTUNE_NEWER_XSIMD}")
    endif()
  endif()
  set(test "${ATTUNE_TEST_PREFIX}${name}")
  if(missing)
    add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo "skipped: ${missing}")
  else()
    string(MAKE_C_IDENTIFIER "${name}" file)
    set(command "${CMAKE_COMMAND}")
    foreach(list "COMPILER=${A_COMPILER}" "FLAGS=${warnings};${A_FLAGS}" "BY=${A_BY}"
        "SYSTEM_INCLUDES=${system_includes};${other_headers};$<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>")
      string(REPLACE ";" "$<SEMICOLON>" list "${list}")
      list(APPEND command "-D${list}")
    endforeach()
    add_test(NAME "${test}" COMMAND ${command} "-DSOURCE=${PROJECT_SOURCE_DIR}/examples/first_call.cpp" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
      "-DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/first_call_${file}" "-DRUN=${A_RUN}"
      "-DIMPLICIT_INCLUDES=${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}" -P "${CMAKE_CURRENT_SOURCE_DIR}/portability/CompileFirstCall.cmake")
  endif()
  set_tests_properties("${test}" PROPERTIES LABELS full SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# What projects add to these warnings, and take attune by -I. g++ warns of signs in every array of a template's extent.
set(more_warnings -Wundef -Wold-style-cast)
set(more_warnings_clang -Wsign-conversion)
foreach(compiler g++ g++-14 clang++ clang++-16 clang++-19)
  find_program(program ${compiler} NO_CACHE)
  string(REGEX REPLACE "[+-].*" "" family ${compiler})  # g, clang
  foreach(standard 20 2b 2c)
    if(program)
      execute_process(COMMAND "${program}" -std=c++${standard} -x c++ -fsyntax-only /dev/null RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
      if(NOT unknown)
        attune_add_first_call(${compiler}.c++${standard} COMPILER "${program}" FLAGS -std=c++${standard} -O0 -march=native
          ${more_warnings} ${more_warnings_${family}})
      endif()
    endif()
  endforeach()
  unset(program)
endforeach()

attune_add_first_call(sve256 COMPILER aarch64-linux-gnu-g++ NEWER_XSIMD RUN BY qemu-aarch64 -cpu max,sve256=on
  FLAGS -std=c++20 -O1 -march=armv8.2-a+sve -msve-vector-bits=256 -Wno-psabi -static)
attune_add_first_call(armhf COMPILER arm-linux-gnueabihf-g++ RUN BY qemu-arm FLAGS -std=c++20 -O1 -mfpu=neon-vfpv4 -Wno-psabi -static)
attune_add_first_call(without_vectors COMPILER i686-linux-gnu-g++ NEWER_XSIMD RUN FLAGS -std=c++20 -O1 -mno-sse2 -static)
attune_add_first_call(windows COMPILER ${ATTUNE_ZIG} c++ FLAGS -std=c++20 -O1 -target x86_64-windows-gnu -DATTUNE_WITHOUT_FMA)
attune_add_first_call(macos COMPILER ${ATTUNE_ZIG} c++ FLAGS -std=c++20 -O1 -target aarch64-macos)
