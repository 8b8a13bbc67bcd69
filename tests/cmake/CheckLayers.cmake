# cmake -DROOT= -P this: dependencies point downward only, only the reference part needs Eigen and Boost, one header includes xsimd.
# A direct include is enough to look at: every header on the way is looked at too.
cmake_minimum_required(VERSION 3.25)

# Lowest first; a header may include its own layer and those below.
set(layers
  "^(version|config)\\.hpp$"
  "^core/"
  "^threads/"
  "^policies/"
  "^(operators(/|\\.hpp$)|policies\\.hpp$)"
  "^exec/([^/]+\\.hpp$|states/)"
  "^calls/"
  "^exec/(reference|thrust|cuda)/"
  "^exec/cpu/(executor|threads)\\.hpp$"
  "^exec/cpu/products/"
  "^exec/cpu/contraction/"
  "^exec/cpu/row/"
  "^exec/cpu/tile/"
  "^exec/cpu/bf16/"
  "^exec/cpu/gradients/"
  "^exec/cpu/decode/"
  "^exec/cpu/[^/]+\\.hpp$"
  "^exec/mpi/"
  "^float8_cache\\.hpp$"
  "^(analysis/|line(/|\\.hpp$))"
  "^(interop|io|certify)/"
  "^testing/"
  "^(attune|reference|thrust|cuda|cuda_gradients|mpi|analysis|certify|testing|io)\\.hpp$")
# Folders that know nothing of each other, though one stands above the other.
set(apart "^exec/cpu/decode/ ^exec/cpu/gradients/" "^exec/thrust/ ^exec/reference/" "^exec/cuda/ ^exec/reference/" "^exec/cuda/ ^exec/thrust/" "^analysis/ ^line/" "^line/thrust/ ^exec/cpu/")
# What may be included of exec/cpu from outside of it. exec/mpi divides its calls: it also includes exec/cpu/parts.hpp, and uses the names
# of exec_cpu that the first comment of this header lists.
set(doors "^exec/cpu/(threads|products|forward|gradients|decode|executor|decode/float8_cache)\\.hpp$")

# Headers that may include Eigen and Boost.
set(heavy "^((reference|analysis|certify|testing|io)\\.hpp$|exec/reference/|analysis/(weights|jacobian|maxent|similarity|grouping|desiderata|observe|kolmogorov_smirnov)\\.hpp$|interop/|io/|certify/|testing/)")

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
      elseif(included MATCHES "^exec/cpu/" AND NOT header MATCHES "^exec/cpu/" AND NOT included MATCHES "${doors}"
             AND NOT (header MATCHES "^exec/mpi/" AND included STREQUAL "exec/cpu/parts.hpp"))
        string(APPEND problems "attune/${header} includes attune/${included}, which is internal to exec/cpu\n")
      elseif(included MATCHES "^line/[^/]+/" AND NOT header MATCHES "^line/" AND NOT included MATCHES "^line/thrust/")
        string(APPEND problems "attune/${header} includes attune/${included}, which is internal to line\n")
      elseif(header MATCHES "^exec/" AND included MATCHES "^policies/[^/]+/" AND NOT included MATCHES "concepts\\.hpp$")
        string(APPEND problems "attune/${header} includes attune/${included}: an executor never names a policy\n")
      endif()
      foreach(pair IN LISTS apart)
        string(REPLACE " " ";" pair "${pair}")
        list(GET pair 0 one)
        list(GET pair 1 other)
        if((header MATCHES "${one}" AND included MATCHES "${other}") OR (header MATCHES "${other}" AND included MATCHES "${one}"))
          string(APPEND problems "attune/${header} includes attune/${included}: these folders know nothing of each other\n")
        endif()
      endforeach()
    elseif(line MATCHES "include[ \t]*<(boost|Eigen|unsupported)/" AND NOT header MATCHES "${heavy}")
      string(APPEND problems "attune/${header}: ${line}: only the reference part needs Eigen and Boost\n")
    elseif(line MATCHES "include[ \t]*<xsimd/" AND NOT header STREQUAL "core/xsimd.hpp")
      string(APPEND problems "attune/${header}: ${line}: attune/core/xsimd.hpp alone includes xsimd, and knows its versions\n")
    elseif(line MATCHES "include[ \t]*\"")
      string(APPEND problems "attune/${header}: ${line}: public headers are included as <attune/...>\n")
    endif()
  endforeach()
endforeach()

# The names in the table of the first comment of exec/cpu/parts.hpp.
file(STRINGS "${include}/exec/cpu/parts.hpp" parts REGEX "^//   [a-z_, ]+   ")
list(TRANSFORM parts REPLACE "^//   ([a-z_, ]+)   .*$" "\\1")
string(REGEX MATCHALL "[a-z_]+" parts "${parts}")

# Folders of at most 16 headers and headers of at most 400 lines, so that a thing is found by its folder. Policies are one file each, and
# core is what everybody knows; neither counts.
set(folders "")
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  if(NOT folder MATCHES "^(policies|core)(/|$)")
    list(APPEND folders "${folder}/")
    string(MAKE_C_IDENTIFIER "in_${folder}" count)
    math(EXPR ${count} "0${${count}} + 1")
  endif()
  file(READ "${include}/${header}" text)
  if(header MATCHES "^exec/mpi/")
    string(REGEX MATCHALL "exec_cpu::[a-z_]+" names "${text}")
    foreach(name IN LISTS names)
      string(REPLACE "exec_cpu::" "" name "${name}")
      if(NOT name IN_LIST parts)
        string(APPEND problems "attune/${header} uses exec_cpu::${name}, which the first comment of exec/cpu/parts.hpp does not list\n")
      endif()
    endforeach()
  endif()
  if(text MATCHES "\n *\\[\\[no_unique_address" AND NOT header MATCHES "^exec/cpu/")
    string(APPEND problems "attune/${header}: [[no_unique_address]]: nvcc lays such members out in another way than the host (config.hpp)\n")
  endif()
  string(REGEX REPLACE "[^\n]" "" ends "${text}")
  string(LENGTH "${ends}" length)
  if(length GREATER 400)
    string(APPEND problems "attune/${header}: ${length} lines; at most 400\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  string(REGEX REPLACE "/$" "" folder "${folder}")
  string(MAKE_C_IDENTIFIER "in_${folder}" count)
  if(${count} GREATER 16)
    string(APPEND problems "attune/${folder}: ${${count}} headers; at most 16\n")
  endif()
endforeach()
if(problems)
  message("${problems}")
  message(FATAL_ERROR "layers are broken (the rules stand in tests/cmake/CheckLayers.cmake)")
endif()
