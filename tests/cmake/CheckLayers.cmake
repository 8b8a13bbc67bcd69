# cmake -DROOT= -P this: dependencies point downward only, only the reference part needs Eigen and Boost, one header includes xsimd.
# A direct include is enough to look at: every header on the way is looked at too.
cmake_minimum_required(VERSION 3.25)

# Lowest first; a header may include its own layer and those below.
set(layers
  "^(version|config)\\.hpp$"
  "^core/"
  "^policies/"
  "^(operators(/|\\.hpp$)|policies\\.hpp$)"
  "^exec/"
  "^(cache|analysis|sorted)/"
  "^(interop|io|testing)/"
  "^(attune|reference|thrust|analysis)\\.hpp$")
# Headers that may include Eigen and Boost.
set(heavy "^(reference\\.hpp$|analysis\\.hpp$|exec/reference/|analysis/(weights|jacobian|maxent|similarity|grouping|wishes|observe|kolmogorov_smirnov)\\.hpp$|interop/|io/|testing/)")

function(layer_of header result)
  set(level 0)
  foreach(regex IN LISTS layers)
    if(header MATCHES "${regex}")
      set(${result} ${level} PARENT_SCOPE)
      return()
    endif()
    math(EXPR level "${level} + 1")
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

set(problems "")
set(include "${ROOT}/include/attune")
file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/*.hpp")
foreach(header IN LISTS headers)
  layer_of("${header}" level)
  if(level STREQUAL "")
    string(APPEND problems "attune/${header}: in no known layer\n")
    continue()
  endif()
  file(STRINGS "${include}/${header}" lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    if(line MATCHES "include[ \t]*<attune/([^>]+)>")
      set(included "${CMAKE_MATCH_1}")
      layer_of("${included}" below)
      if(below STREQUAL "" OR below GREATER level)
        string(APPEND problems "attune/${header} includes attune/${included}, which lies above it\n")
      elseif(included MATCHES "${heavy}" AND NOT header MATCHES "${heavy}")
        string(APPEND problems "attune/${header} includes attune/${included}, which needs Eigen and Boost\n")
      elseif(header MATCHES "^exec/" AND included MATCHES "^policies/[^/]+/" AND NOT included MATCHES "concepts\\.hpp$")
        string(APPEND problems "attune/${header} includes attune/${included}: an executor never names a policy\n")
      endif()
    elseif(line MATCHES "include[ \t]*<(boost|Eigen|unsupported)/" AND NOT header MATCHES "${heavy}")
      string(APPEND problems "attune/${header}: ${line}: only the reference part needs Eigen and Boost\n")
    elseif(line MATCHES "include[ \t]*<xsimd/" AND NOT header STREQUAL "core/xsimd.hpp")
      string(APPEND problems "attune/${header}: ${line}: attune/core/xsimd.hpp alone includes xsimd, and knows its versions\n")
    elseif(line MATCHES "include[ \t]*\"")
      string(APPEND problems "attune/${header}: ${line}: public headers are included as <attune/...>\n")
    endif()
  endforeach()
endforeach()
if(problems)
  message("${problems}")
  message(FATAL_ERROR "layers are broken (the rules stand in tests/cmake/CheckLayers.cmake)")
endif()
