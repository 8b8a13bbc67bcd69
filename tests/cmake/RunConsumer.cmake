# cmake [-DCMAKE=<another cmake>] -DSOURCE= -DBINARY= -DGENERATOR= -DMAKE_PROGRAM= -DCXX= -DVERSION= [-DOPTIONS=] [-DFAILS_WITH=<regex>] -P this
# Configures, builds and runs a project from nothing; with FAILS_WITH, configuring must fail and say so.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${BINARY}")
if(NOT CMAKE)
  set(CMAKE "${CMAKE_COMMAND}")
endif()

# What the user of the enclosing build exported must not leak in.
unset(ENV{CXXFLAGS})
unset(ENV{CMAKE_PREFIX_PATH})
execute_process(
  COMMAND "${CMAKE}" -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF ${OPTIONS}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(FAILS_WITH)
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  if(status EQUAL 0)
    message("${output}")
    message(FATAL_ERROR "configuring ${SOURCE} succeeds; it must fail with '${FAILS_WITH}'")
  elseif(NOT flat MATCHES "${FAILS_WITH}")
    message("${output}")
    message(FATAL_ERROR "configuring ${SOURCE} fails, but not with '${FAILS_WITH}'")
  endif()
  return()
endif()
if(NOT status EQUAL 0)
  message("${output}")
  message(FATAL_ERROR "configuring ${SOURCE} fails")
endif()
execute_process(COMMAND "${CMAKE}" --build "${BINARY}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${BINARY}/consumer" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "${output}")
if(NOT output MATCHES "attune ${VERSION}")
  message(FATAL_ERROR "the consumer must print 'attune ${VERSION}'")
endif()
