# Every public header stands alone. One source per header includes it twice and nothing else: a missing include or a missing
# include guard does not compile. One more source includes all of them twice, and everything is linked into one program:
# a definition that is not inline is a link error. And one includes them after other people's macros (portability/macros.hpp). The quick
# tier has the last two sources alone.

# Headers that need more than attune::attune: <regex> <target>, tested where that target exists; the last that fits counts.
set(attune_header_targets
  "^attune/(thrust\\.hpp$|exec/thrust/|line/thrust/)" attune::thrust
  "^attune/(cuda(_gradients)?\\.hpp$|exec/cuda/(gradients/)?executor\\.hpp$)" attune::nvcc  # no target: nvcc alone compiles them (tests/exec_cuda, consumer.find_package.cuda)
  "^attune/((reference|testing)\\.hpp$|exec/reference/|interop/|testing/)" attune::testing  # which links attune::reference
  "^attune/certify(/|\\.hpp$)" attune::certify
  "^attune/analysis(\\.hpp$|/(kolmogorov_smirnov|observe)\\.hpp$)" attune::analysis
  "^attune/io(/|\\.hpp$)" attune::io
  "^attune/(certify|testing)/enclosure(/|\\.hpp$)" attune::enclosure
  "^attune/(mpi\\.hpp$|exec/mpi/|interop/c_mpi\\.hpp$)" attune::mpi
  "^attune/(interop/(c_cuda|device/(call|c_cuda_vjp))|testing/interop/c_warps)\\.hpp$" attune::nvcc  # a macro comes first (tests/exec_cuda, nvcc)
  "^attune/(threads|exec)/openmp\\.hpp$" attune::openmp)

# attune_write_macro_test(<source> HEADERS <header>... BELOW <header>...): what these headers, and those below that they may include,
# include that is not attune's; then the macros; then the headers.
function(attune_write_macro_test source)
  cmake_parse_arguments(A "" "" "HEADERS;BELOW" ${ARGN})
  set(names "")
  foreach(header IN LISTS A_HEADERS A_BELOW)
    file(STRINGS "${PROJECT_SOURCE_DIR}/include/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*<")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^<]*<([^>]+)>.*$" "\\1" name "${line}")
      list(APPEND names "${name}")
    endforeach()
  endforeach()
  list(FILTER names EXCLUDE REGEX "^attune/")
  list(REMOVE_DUPLICATES names)
  list(SORT names)
  set(theirs "")
  foreach(name IN LISTS names)
    string(APPEND theirs "#if __has_include(<${name}>)\n#include <${name}>\n#endif\n")
  endforeach()
  set(ours "")
  foreach(header IN LISTS A_HEADERS)
    string(APPEND ours "#include <${header}>\n")
  endforeach()
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT "${theirs}#include \"${CMAKE_CURRENT_SOURCE_DIR}/portability/macros.hpp\"\n${ours}")
endfunction()

function(attune_add_header_tests)
  set(include "${PROJECT_SOURCE_DIR}/include")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${include}" "${include}/attune/*.hpp")
  list(SORT headers)
  foreach(header IN LISTS headers)
    set(target attune::attune)
    set(rules ${attune_header_targets})
    while(rules)
      list(POP_FRONT rules regex needed)
      if(header MATCHES "${regex}")
        set(target ${needed})
      endif()
    endwhile()
    if(TARGET ${target})
      list(APPEND headers_${target} ${header})
      list(APPEND targets ${target})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES targets)

  set(gen "${CMAKE_CURRENT_BINARY_DIR}/headers")
  add_executable(attune_headers "${gen}/main.cpp")
  file(CONFIGURE OUTPUT "${gen}/main.cpp" CONTENT "int main() { return 0; }\n")
  foreach(target IN LISTS targets)
    string(REPLACE "::" "_" objects "headers_of_${target}")
    set(sources "")
    set(every "")
    foreach(header IN LISTS headers_${target})
      string(REPLACE "/" "." stem "${header}")
      if(NOT ATTUNE_TEST_SCOPE STREQUAL "quick")
        file(CONFIGURE OUTPUT "${gen}/${stem}.cpp" CONTENT "#include <${header}>\n#include <${header}>\n")
        list(APPEND sources "${gen}/${stem}.cpp")
      endif()
      string(APPEND every "#include <${header}>\n")
    endforeach()
    file(CONFIGURE OUTPUT "${gen}/${objects}.every.cpp" CONTENT "${every}${every}")
    set(below "")
    foreach(lower attune::attune attune::certify attune::testing)
      if(NOT lower STREQUAL "attune::testing" OR target MATCHES "analysis|enclosure")  # the others have no Eigen
        list(APPEND below ${headers_${lower}})
      endif()
    endforeach()
    attune_write_macro_test("${gen}/${objects}.macros.cpp" HEADERS ${headers_${target}} BELOW ${below})
    add_library(${objects} OBJECT ${sources} "${gen}/${objects}.every.cpp" "${gen}/${objects}.macros.cpp")
    # -O0 and no -march: what is tested needs neither.
    get_target_property(warnings attune_dev_flags INTERFACE_COMPILE_OPTIONS)
    list(REMOVE_ITEM warnings -march=native)
    # More warnings, for projects that have them and take attune by -I. g++ 12 warns of signs in every array of a template's extent.
    target_compile_options(${objects} PRIVATE ${warnings} -O0 -Wundef -Wold-style-cast $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>
      $<$<CXX_COMPILER_ID:Clang>:-Wsign-conversion>)
    target_link_libraries(${objects} PRIVATE ${target})
    target_link_libraries(attune_headers PRIVATE ${objects} ${target})
  endforeach()
  add_test(NAME "${ATTUNE_TEST_PREFIX}headers" COMMAND attune_headers)
  set_tests_properties("${ATTUNE_TEST_PREFIX}headers" PROPERTIES LABELS quick)
endfunction()
