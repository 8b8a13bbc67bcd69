# compile_fail/NAME.cpp: first line "// expect-error: <regex>". The test passes when the compiler rejects the file and says
# something that the regular expression (CMake's dialect) matches. compile_fail/legal/NAME.cpp: the nearest legal program;
# the test passes when the compiler accepts it without a warning. Both for every compiler found. The build precompiles attune.hpp
# for each of them (target attune_compile_fail_headers): three quarters of a test's time would go into reading it.
function(attune_add_compile_fail_tests)
  attune_find_compilers()
  attune_glob(files compile_fail/*.cpp)
  set(gen "${CMAKE_CURRENT_BINARY_DIR}/compile_fail")
  set(script "${CMAKE_CURRENT_SOURCE_DIR}/cmake/ExpectCompileFailure.cmake")
  set(every_precompiled "")
  set(of_mpi "")
  if(TARGET MPI::MPI_CXX)
    set(of_mpi ";$<TARGET_PROPERTY:MPI::MPI_CXX,INTERFACE_INCLUDE_DIRECTORIES>")
  endif()
  foreach(compiler gxx clangxx)
    string(TOUPPER "ATTUNE_${compiler}" program)
    if(NOT ${program})
      message(STATUS "attune: no ${compiler}: compile-fail tests run without it")
      continue()
    endif()
    # Without carets: the message must say it, not a line of source that happens to be quoted.
    # No -march either, and that is meant.
    set(flags -fno-diagnostics-show-caret -DATTUNE_WITHOUT_FMA)
    if(compiler STREQUAL "clangxx")
      set(flags -fno-caret-diagnostics -DATTUNE_WITHOUT_FMA)
    endif()
    set(command "${CMAKE_COMMAND}" "-DCOMPILER=${${program}}")
    foreach(list "FLAGS=${flags}" "INCLUDES=$<TARGET_PROPERTY:attune::reference,INTERFACE_INCLUDE_DIRECTORIES>"
        "SYSTEM_INCLUDES=$<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>;$<TARGET_PROPERTY:attune::boost,INTERFACE_INCLUDE_DIRECTORIES>;$<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>${of_mpi}"
        "IMPLICIT_INCLUDES=${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}")
      string(REPLACE ";" "$<SEMICOLON>" list "${list}")  # one argument of the command
      list(APPEND command "-D${list}")
    endforeach()
    set(header "${gen}/${compiler}/attune.hpp")
    file(CONFIGURE OUTPUT "${header}" CONTENT "#include <attune/attune.hpp>\n")
    set(precompiled "${header}.gch")  # clang's own name is .pch; it takes any
    add_custom_command(OUTPUT "${precompiled}" DEPFILE "${precompiled}.d" DEPENDS "${script}" VERBATIM
      COMMAND ${command} "-DSOURCE=${header}" -DEXPECT=precompile "-DPRECOMPILED=${precompiled}" -P "${script}"
      COMMENT "Precompiling attune.hpp for the compile-failure tests of ${compiler}")
    list(APPEND every_precompiled "${precompiled}")
    foreach(file IN LISTS files)
      set(expect reject)
      if(file MATCHES "^compile_fail/legal/")
        set(expect accept)
      endif()
      string(REGEX REPLACE "^compile_fail/(.*)\\.cpp$" "\\1" name "${file}")
      set(test "${ATTUNE_TEST_PREFIX}compile_fail.${compiler}.${name}")
      add_test(NAME "${test}" COMMAND ${command} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${file}" -DEXPECT=${expect}
        "-DPRECOMPILED=${precompiled}" -P "${script}")
      set_tests_properties("${test}" PROPERTIES LABELS quick SKIP_REGULAR_EXPRESSION "-- skipped: there is")
    endforeach()
  endforeach()
  add_custom_target(attune_compile_fail_headers ALL DEPENDS ${every_precompiled})
endfunction()
