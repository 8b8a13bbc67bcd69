# Small projects that use attune as a stranger would: installed (under a path with a space) and as a subdirectory.
function(attune_add_consumer_tests)
  set(work "${CMAKE_CURRENT_BINARY_DIR}/consumer")
  set(prefix "${work}/install prefix")
  set(install "${ATTUNE_TEST_PREFIX}consumer.install")
  add_test(NAME ${install} COMMAND "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}" "-DPREFIX=${prefix}"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/InstallAfresh.cmake")
  set_tests_properties(${install} PROPERTIES LABELS quick FIXTURES_SETUP attune_installed)

  # attune_add_consumer(<name> <project> [INSTALLED] [CMAKE <another cmake>] [FAILS_WITH <regex>] [OPTIONS <-D...>...])
  function(attune_add_consumer name project)
    cmake_parse_arguments(A "INSTALLED" "FAILS_WITH;CMAKE" "OPTIONS" ${ARGN})
    set(test "${ATTUNE_TEST_PREFIX}consumer.${name}")
    set(options ${A_OPTIONS})
    if(A_INSTALLED)
      list(APPEND options "-DCMAKE_PREFIX_PATH=${prefix}")
    else()
      list(APPEND options "-DATTUNE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
    endif()
    add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" "-DCMAKE=${A_CMAKE}"
      "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/consumer/${project}" "-DBINARY=${work}/${name}"
      "-DGENERATOR=${CMAKE_GENERATOR}" "-DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}" "-DCXX=${CMAKE_CXX_COMPILER}"
      "-DOPTIONS=${options}" "-DFAILS_WITH=${A_FAILS_WITH}" "-DVERSION=${PROJECT_VERSION}"
      -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/RunConsumer.cmake")
    set_tests_properties(${test} PROPERTIES LABELS quick)
    if(A_INSTALLED)
      set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED attune_installed)
    endif()
  endfunction()

  set(without_eigen certify)  # the components that do without Eigen, with commas between
  if(TARGET attune::io)
    string(APPEND without_eigen ",io")
  endif()
  set(components -DCONSUMER_COMPONENTS=reference,testing,analysis,${without_eigen})

  attune_add_consumer(add_subdirectory add_subdirectory OPTIONS ${components})
  attune_add_consumer(add_subdirectory.without_eigen add_subdirectory FAILS_WITH "no target attune::testing: Eigen.*libeigen3-dev"
    OPTIONS -DCONSUMER_COMPONENTS=testing -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
  attune_add_consumer(find_package find_package INSTALLED)
  attune_add_consumer(find_package.components find_package INSTALLED OPTIONS -DCONSUMER_COMPONENTS=reference,testing,analysis)
  attune_add_consumer(find_package.without_eigen find_package INSTALLED
    OPTIONS -DCONSUMER_COMPONENTS=${without_eigen} -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
  attune_add_consumer(find_package.reference_without_eigen find_package INSTALLED FAILS_WITH "component.*'reference'.*libeigen3-dev"
    OPTIONS -DCONSUMER_COMPONENTS=reference -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
  attune_add_consumer(find_package.without_xsimd find_package INSTALLED FAILS_WITH "libxsimd-dev"
    OPTIONS -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON -DATTUNE_XSIMD_INCLUDE_DIR=)
  attune_add_consumer(find_package.xsimd_headers_alone find_package INSTALLED OPTIONS -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON)
  attune_add_consumer(find_package.enclosure_without_mpfi find_package INSTALLED FAILS_WITH "component.*'enclosure'.*libmpfi-dev"
    OPTIONS -DCONSUMER_COMPONENTS=enclosure -DATTUNE_MPFI_INCLUDE_DIR=)
  attune_add_consumer(find_package.testing_without_boost find_package INSTALLED FAILS_WITH "component.*'testing'.*libboost-dev"
    OPTIONS -DCONSUMER_COMPONENTS=testing -DATTUNE_BOOST_INCLUDE_DIR=)
  attune_add_consumer(find_package.io_without_json find_package INSTALLED FAILS_WITH "component.*'io'.*nlohmann-json3-dev"
    OPTIONS -DCONSUMER_COMPONENTS=io -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
  if(TARGET attune::mpi)
    attune_add_consumer(find_package.mpi find_package INSTALLED OPTIONS -DCONSUMER_COMPONENTS=mpi)
  endif()
  attune_add_consumer(find_package.mpi_without_mpi find_package INSTALLED FAILS_WITH "component.*'mpi'.*libopenmpi-dev"
    OPTIONS -DCONSUMER_COMPONENTS=mpi -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
  attune_add_consumer(find_package.cuda_without_cuda find_package INSTALLED FAILS_WITH "component.*'cuda'.*CUDA >= .*not found"
    OPTIONS -DCONSUMER_COMPONENTS=cuda -DATTUNE_CUDA_INCLUDE_DIR=)
  find_program(ATTUNE_NVCC nvcc PATHS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin DOC "nvcc, for the consumer of the component cuda")
  mark_as_advanced(ATTUNE_NVCC)
  if(ATTUNE_NVCC AND TARGET attune::cuda)  # compiled and linked; no kernel runs
    attune_add_consumer(find_package.cuda find_package INSTALLED
      OPTIONS -DCONSUMER_COMPONENTS=cuda -DCMAKE_CUDA_COMPILER=${ATTUNE_NVCC} -DCMAKE_CUDA_ARCHITECTURES=90)
    set_tests_properties(${ATTUNE_TEST_PREFIX}consumer.find_package.cuda PROPERTIES LABELS full)
  endif()
  attune_add_consumer(find_package.unknown_component find_package INSTALLED
    FAILS_WITH "no component 'not_a_component'. there are: reference, certify, testing, analysis, enclosure, io, thrust, mpi, cuda"
    OPTIONS -DCONSUMER_COMPONENTS=not_a_component)

  # The oldest CMake for users: scripts/test --full gets it from PyPI.
  set(ATTUNE_OLD_CMAKE "" CACHE FILEPATH "cmake 3.22, for tests of the full tier")
  if(ATTUNE_OLD_CMAKE)
    attune_add_consumer(old_cmake.add_subdirectory add_subdirectory CMAKE "${ATTUNE_OLD_CMAKE}" OPTIONS ${components})
    attune_add_consumer(old_cmake.find_package find_package INSTALLED CMAKE "${ATTUNE_OLD_CMAKE}" OPTIONS ${components})
    attune_add_consumer(old_cmake.tests add_subdirectory CMAKE "${ATTUNE_OLD_CMAKE}" FAILS_WITH "need CMake 3.25; this is 3.22"
      OPTIONS -DATTUNE_BUILD_TESTS=ON)
    set(again "${work}/installed by old cmake")
    add_test(NAME ${ATTUNE_TEST_PREFIX}consumer.old_cmake.install COMMAND "${CMAKE_COMMAND}" "-DCMAKE=${ATTUNE_OLD_CMAKE}"
      "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DBUILD=${again}/build" "-DPREFIX=${again}/prefix" "-DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}"
      -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/InstallAfresh.cmake")
    set_tests_properties(${ATTUNE_TEST_PREFIX}consumer.old_cmake.install PROPERTIES LABELS full)
  endif()
endfunction()
