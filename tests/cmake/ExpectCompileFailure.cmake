# cmake -DCOMPILER= -DFLAGS= -DSOURCE= -DEXPECT=reject|accept|precompile -DPRECOMPILED= -DINCLUDES= -DSYSTEM_INCLUDES=
#   -DIMPLICIT_INCLUDES= -P this
# With EXPECT=precompile the source is a header, and PRECOMPILED, HEADER.gch, is written. The tests include HEADER first, but for
# those whose second line is "// flags: <flags>": they are compiled with those flags too, and what is precompiled would not fit.
cmake_minimum_required(VERSION 3.25)

file(READ "${SOURCE}" text)
if(EXPECT STREQUAL "reject")
  if(NOT text MATCHES "^// expect-error: ([^\n]*[^ \n])")
    message(FATAL_ERROR "${SOURCE}: the first line must be '// expect-error: <regex>'")
  endif()
  set(expected "${CMAKE_MATCH_1}")
endif()

set(flags ${FLAGS})
list(REMOVE_DUPLICATES INCLUDES)
foreach(dir IN LISTS INCLUDES)
  if(NOT dir IN_LIST SYSTEM_INCLUDES AND NOT dir IN_LIST IMPLICIT_INCLUDES)
    list(APPEND flags -I "${dir}")
  endif()
endforeach()
list(REMOVE_DUPLICATES SYSTEM_INCLUDES)
foreach(dir IN LISTS SYSTEM_INCLUDES)
  if(dir AND NOT dir IN_LIST IMPLICIT_INCLUDES)
    list(APPEND flags -isystem "${dir}")
  endif()
endforeach()

# In English whatever the locale; by the compiler itself, should its name be ccache's.
set(ENV{LC_ALL} C)
set(ENV{CCACHE_DISABLE} 1)
list(PREPEND flags -std=c++20 -Wall -Wextra)
if(EXPECT STREQUAL "precompile")
  execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND "${COMPILER}" ${flags} -x c++-header "${SOURCE}" -o "${PRECOMPILED}" -MD -MT "${PRECOMPILED}" -MF "${PRECOMPILED}.d")
  return()
endif()
if(text MATCHES "\n// flags: ([^\n]+)\n")
  separate_arguments(more UNIX_COMMAND "${CMAKE_MATCH_1}")
  list(APPEND flags ${more})
else()
  string(REGEX REPLACE "\\.gch$" "" header "${PRECOMPILED}")
  list(APPEND flags -include "${header}")
endif()
execute_process(
  COMMAND "${COMPILER}" ${flags} -fsyntax-only "${SOURCE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

set(problem "")
if(EXPECT STREQUAL "accept")
  if(NOT status EQUAL 0 OR output)
    set(problem "must compile without a word")
  endif()
elseif(status EQUAL 0)
  set(problem "compiles; it must be rejected with '${expected}'")
elseif(NOT output MATCHES "error:")
  set(problem "makes the compiler fail without an error message (status ${status})")
elseif(NOT output MATCHES "${expected}")
  set(problem "is rejected, but not with '${expected}'")
endif()
if(problem)
  message("${COMPILER}:\n${output}")
  message(FATAL_ERROR "${SOURCE} ${problem}")
endif()
