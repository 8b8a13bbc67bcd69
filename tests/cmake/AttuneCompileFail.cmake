# compile_fail/TABLE.cpp: what every snippet of the table includes and uses, then the snippets, each below a line that names it:
#   // expect-error NAME: <regex>    the compiler rejects it and says what the regular expression (CMake's dialect) matches
#   // expect-no-error NAME          a legal neighbor: the compiler accepts it without a warning
# A blank line ends a snippet, so none goes without such a line. Each is compiled alone, by every compiler found, in the test
# compile_fail.COMPILER.NAME or compile_fail.COMPILER.legal/NAME. The build precompiles operators.hpp, and with it
# attune.hpp, for each of them (target attune_compile_fail_headers): three quarters of a test's time would go into reading it.

# attune_snippets(<variable> <table>...): the tests of all tables, as TABLE:NAME or TABLE:legal/NAME.
function(attune_snippets variable)
  set(found "")
  set(names "")
  foreach(table IN LISTS ARGN)
    file(READ "${table}" text)
    string(REGEX REPLACE "[][;\\]" "" text "${text}")  # they mean something in lists
    string(REGEX MATCHALL "\n// *expect[^\n]*" heads "${text}")
    if(NOT heads)
      message(FATAL_ERROR "${table}: no line '// expect-error NAME: <regex>' or '// expect-no-error NAME'")
    endif()
    string(FIND "${text}" "\n// expect" first)
    string(SUBSTRING "${text}" ${first} -1 text)
    string(REPLACE "\n\n// expect" "\n// expect" text "${text}")
    if(text MATCHES "\n\n+([^\n]+)")
      message(FATAL_ERROR "${table}: a snippet without its line '// expect-':\n${CMAKE_MATCH_1}")
    endif()
    foreach(head IN LISTS heads)
      if(head MATCHES "^\n// expect-error ([a-z0-9_]+): [^ ]")
        set(name "${CMAKE_MATCH_1}")
      elseif(head MATCHES "^\n// expect-no-error ([a-z0-9_]+)$")
        set(name "legal/${CMAKE_MATCH_1}")
      else()
        message(FATAL_ERROR "${table}: neither '// expect-error NAME: <regex>' nor '// expect-no-error NAME':${head}")
      endif()
      if(name IN_LIST names)
        message(FATAL_ERROR "${table}: a second snippet ${name}")
      endif()
      list(APPEND names "${name}")
      list(APPEND found "${table}:${name}")
    endforeach()
  endforeach()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

function(attune_add_compile_fail_tests)
  attune_find_compilers()
  attune_glob(tables compile_fail/*.cpp)
  list(TRANSFORM tables PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables})
  attune_snippets(snippets ${tables})
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
    set(header "${gen}/${compiler}/operators.hpp")
    file(CONFIGURE OUTPUT "${header}" CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/operators.hpp\"\n")
    set(precompiled "${header}.gch")  # clang's own name is .pch; it takes any
    add_custom_command(OUTPUT "${precompiled}" DEPFILE "${precompiled}.d" DEPENDS "${script}" VERBATIM
      COMMAND ${command} "-DSOURCE=${header}" "-DPRECOMPILED=${precompiled}" -P "${script}"
      COMMENT "Precompiling operators.hpp for the compile-failure tests of ${compiler}")
    list(APPEND every_precompiled "${precompiled}")
    foreach(snippet IN LISTS snippets)
      string(REGEX MATCH "^(.*):(.*)$" matched "${snippet}")
      set(test "${ATTUNE_TEST_PREFIX}compile_fail.${compiler}.${CMAKE_MATCH_2}")
      add_test(NAME "${test}" COMMAND ${command} "-DSOURCE=${CMAKE_MATCH_1}" "-DSNIPPET=${CMAKE_MATCH_2}"
        "-DPRECOMPILED=${precompiled}" -P "${script}")
      set_tests_properties("${test}" PROPERTIES LABELS quick SKIP_REGULAR_EXPRESSION "-- skipped: there is")
    endforeach()
  endforeach()
  add_custom_target(attune_compile_fail_headers ALL DEPENDS ${every_precompiled})
endfunction()
