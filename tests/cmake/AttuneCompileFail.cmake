# compile_fail/NAME.cpp: first line "// expect-error: <regex>". The test passes when the compiler rejects the file and says
# something that the regular expression (CMake's dialect) matches. compile_fail/legal/NAME.cpp: the nearest legal program;
# the test passes when the compiler accepts it without a warning. Both for every compiler found.
function(attune_add_compile_fail_tests)
  attune_find_compilers()
  attune_glob(files compile_fail/*.cpp)
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
    foreach(file IN LISTS files)
      set(expect reject)
      if(file MATCHES "^compile_fail/legal/")
        set(expect accept)
      endif()
      string(REGEX REPLACE "^compile_fail/(.*)\\.cpp$" "\\1" name "${file}")
      set(test "${ATTUNE_TEST_PREFIX}compile_fail.${compiler}.${name}")
      add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}"
        "-DCOMPILER=${${program}}" "-DFLAGS=${flags}" "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${file}" -DEXPECT=${expect}
        "-DINCLUDES=$<TARGET_PROPERTY:attune_reference,INTERFACE_INCLUDE_DIRECTORIES>"
        "-DSYSTEM_INCLUDES=$<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>;$<TARGET_PROPERTY:attune::boost,INTERFACE_INCLUDE_DIRECTORIES>;$<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>"
        "-DIMPLICIT_INCLUDES=${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}"
        -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/ExpectCompileFailure.cmake")
      set_tests_properties("${test}" PROPERTIES LABELS quick)
    endforeach()
  endforeach()
endfunction()
