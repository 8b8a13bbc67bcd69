# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
#
# Verdicts of a few presets, in the wheel. They compute in double without SIMD: one build for all processors.
#   attune             the program of tools/attune, with verdicts and probes of these presets
#   judges_<preset>    what attune.verdict and attune.testing compile otherwise, at their first call
# A library of judges is 0.8 MB in the wheel, which has at most 20 MB: the last two presets are in the program alone.
set(judged softmax sink biased softcap alibi)
set(judged_in_python softmax sink biased)

if(NOT TARGET attune_program_parts)
  message(FATAL_ERROR "attune: ATTUNE_PYTHON_VERDICTS needs Eigen, Boost, CLI11 and nlohmann-json (Debian, Ubuntu: apt install "
    "libeigen3-dev libboost-dev libcli11-dev nlohmann-json3-dev)")
endif()
add_library(attune_python_verdict_flags INTERFACE)
target_compile_options(attune_python_verdict_flags INTERFACE -O1 -ftree-vectorize -w -DEIGEN_NO_DEBUG -DEIGEN_DONT_VECTORIZE -fvisibility=hidden
  -fvisibility-inlines-hidden -ffunction-sections)
target_link_options(attune_python_verdict_flags INTERFACE -s LINKER:--gc-sections -static-libstdc++ -static-libgcc)

set(judges ${CMAKE_CURRENT_BINARY_DIR}/judges.map)
file(CONFIGURE OUTPUT ${judges} @ONLY CONTENT [[{ global: attune_verdict_1; attune_verdict_gradients_1; attune_probes_1; local: *; };
]])
set(sources)
set(declared)
set(calls)
foreach(preset IN LISTS judged)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/program_${preset}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Made by python/native/verdicts.cmake.
#include <instance.hpp>
namespace attune::tool {
void add_@preset@(std::map<std::string, runner>& to) {
  runner& one = to["@preset@"];
  instantiate_entry<recipes::@preset@, entry::verdict>(one);
  instantiate_entry<recipes::@preset@, entry::gradient_verdict>(one);
  instantiate_entry<recipes::@preset@, entry::probes>(one);
}
}  // namespace attune::tool
]])
  list(APPEND sources ${source})
  string(APPEND declared "void add_${preset}(std::map<std::string, runner>& to);\n")
  string(APPEND calls "  add_${preset}(to);\n")
endforeach()

foreach(preset IN LISTS judged_in_python)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/judges_${preset}.cpp)
  attune_keep_presets(keep ATTUNE_C_MAKE ${preset})
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Made by python/native/verdicts.cmake.
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
#include <attune/testing/interop/c_probes.hpp>
#include <attune/testing/interop/c_verdict.hpp>
#include <attune/testing/interop/c_verdict_gradients.hpp>
#include "@catalogue@"
@keep@#define PRESET(name, call, policies, names, note, op, ...) ATTUNE_KEEP_##name(name, op)
ATTUNE_PRESETS(PRESET)
ATTUNE_C_COMPANION(verdict, run_verdict<make_@preset@>)
ATTUNE_C_COMPANION(verdict_gradients, run_verdict_gradients<make_@preset@>)
ATTUNE_C_COMPANION(probes, run_probes<make_@preset@>)
]])
  add_library(attune_python_judges_${preset} MODULE ${source})
  target_link_libraries(attune_python_judges_${preset} PRIVATE attune::reference attune_python_verdict_flags)
  target_compile_definitions(attune_python_judges_${preset} PRIVATE ATTUNE_C_TYPES=3)
  target_link_options(attune_python_judges_${preset} PRIVATE LINKER:--version-script=${judges})
  set_target_properties(attune_python_judges_${preset} PROPERTIES PREFIX "" OUTPUT_NAME judges_${preset} SUFFIX .so)
  install(TARGETS attune_python_judges_${preset} LIBRARY DESTINATION attune/_native COMPONENT python)
endforeach()

set(source ${CMAKE_CURRENT_BINARY_DIR}/program_all.cpp)
file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Made by python/native/verdicts.cmake.
#include <problem.hpp>
namespace attune::tool {
@declared@void instantiate_all(std::map<std::string, runner>& to) {
@calls@}
}  // namespace attune::tool
]])
set(tool ${PROJECT_SOURCE_DIR}/tools/attune)
add_executable(attune_python_program ${sources} ${source} ${tool}/main.cpp ${tool}/runners.cpp)
target_link_libraries(attune_python_program PRIVATE attune_program_parts attune_python_verdict_flags)
target_compile_options(attune_program_parts PRIVATE -Os -ffunction-sections)  # behind its -O0: small in the wheel
set_target_properties(attune_python_program PROPERTIES OUTPUT_NAME attune)
install(TARGETS attune_python_program RUNTIME DESTINATION attune/_native COMPONENT python)
