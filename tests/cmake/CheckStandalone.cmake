# cmake -DROOT= -P this: the tree names no place outside itself. Brackets in the expressions keep this file from finding itself.
cmake_minimum_required(VERSION 3.25)
find_program(git git)
if(NOT git OR NOT EXISTS "${ROOT}/.git")
  message(STATUS "skipped: not a git checkout")
  return()
endif()
execute_process(
  COMMAND "${git}" -c safe.directory=* grep --untracked -nIE -e "[.][.]/share[d]" -e "(^|[^[:alnum:]_.-])/wor[k](/|[^[:alnum:]_-]|$)"
  WORKING_DIRECTORY "${ROOT}" RESULT_VARIABLE status OUTPUT_VARIABLE found ERROR_VARIABLE problem)
if(status EQUAL 0)
  message(FATAL_ERROR "these lines name places outside the project:\n${found}")
elseif(NOT status EQUAL 1)
  message(FATAL_ERROR "git grep failed (${status}): ${problem}")
endif()
