# attune_add_isa_tests(<march> <file>...)
#
# The program attune_isa_<march> and the test isa.<march>: these files for another instruction set than -march=native, as far as this
# machine has it. Sizes of tiles follow from the registers, and a machine with AVX-512 would see those of AVX2 nowhere else in the
# quick tier. The presets sse2 and avx2 have every operator, but none of what these files call beside forward() and vjp().
function(attune_add_isa_tests march)
  include(CheckCXXSourceRuns)
  if(march STREQUAL "x86-64-v3")
    check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx512f\") ? 0 : 1; }" ATTUNE_RUNS_AVX512)
    if(NOT ATTUNE_RUNS_AVX512)
      message(STATUS "attune: no test isa.${march}: without AVX-512, the test unit has the registers of this instruction set")
      return()
    endif()
  endif()
  set(target attune_isa_${march})
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE doctest::doctest attune::reference attune_doctest_main)
  get_target_property(flags attune_dev_flags INTERFACE_COMPILE_OPTIONS)
  list(REMOVE_ITEM flags -march=native)
  target_compile_options(${target} PRIVATE ${flags} -march=${march} -O1)
  target_compile_definitions(${target} PRIVATE ATTUNE_WITHOUT_FMA)  # SSE2 has none, and that is meant
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  attune_add_doctest_run(isa.${march} ${target} "")
endfunction()
