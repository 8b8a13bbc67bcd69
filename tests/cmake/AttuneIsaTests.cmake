# attune_add_isa_tests(<march> <file>... [ARGUMENTS <argument>...])
#
# The program attune_isa_<march> and the test isa.<march>: these files for another instruction set than -march=native, as far as this
# machine, or its emulator, has it. Sizes of tiles follow from the registers, and a machine with AVX-512 would see those of AVX2 nowhere
# else in the quick tier. The presets sse2 and avx2 have every operator, but none of what these files call beside forward() and vjp().
# Products of bf16 by instructions of ARM run here alone. ARGUMENTS are the program's.
function(attune_add_isa_tests march)
  include(CheckCXXSourceRuns)
  if(march STREQUAL "x86-64-v3")
    check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx512f\") ? 0 : 1; }" ATTUNE_RUNS_AVX512)
    if(NOT ATTUNE_RUNS_AVX512)
      message(STATUS "attune: no test isa.${march}: without AVX-512, the test unit has the registers of this instruction set")
      return()
    endif()
  elseif(march MATCHES "\\+bf16$")
    set(CMAKE_REQUIRED_FLAGS -march=${march})
    check_cxx_source_runs("
      #include <arm_neon.h>
      int main(int n, char**) {
        bfloat16x8_t const x = vreinterpretq_bf16_u16(vdupq_n_u16(n == 1 ? 0x3f80 : 0));
        return vgetq_lane_f32(vbfmmlaq_f32(vdupq_n_f32(0.0f), x, x), 0) == 4.0f ? 0 : 1;
      }" ATTUNE_RUNS_BFMMLA)
    if(NOT ATTUNE_RUNS_BFMMLA)
      message(STATUS "attune: no test isa.${march}: this processor, or its emulator, has no instructions for bf16")
      return()
    endif()
  endif()
  set(target attune_isa_${march})
  cmake_parse_arguments(A "" "" "ARGUMENTS" ${ARGN})
  add_executable(${target} ${A_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE doctest::doctest attune::reference attune_doctest_main)
  get_target_property(flags attune_dev_flags INTERFACE_COMPILE_OPTIONS)
  list(REMOVE_ITEM flags -march=native)
  target_compile_options(${target} PRIVATE ${flags} -march=${march} -O1)
  target_compile_definitions(${target} PRIVATE ATTUNE_WITHOUT_FMA)  # SSE2 has none, and that is meant
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  attune_add_doctest_run(isa.${march} ${target} "" ${A_ARGUMENTS})
endfunction()
