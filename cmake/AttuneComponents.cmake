# attune's components, the targets beside attune::attune, and what each links: used by the build and, installed beside
# attuneConfig.cmake, by find_package. A component comes after those that it links. AttuneDependencies.cmake has, where they are needed,
# attune_find_<component>, which looks for packages, and attune_describe_<component>, which says how users compile.
set(ATTUNE_COMPONENTS reference certify testing analysis enclosure io thrust mpi cuda)
set(ATTUNE_LINKS_OF_reference attune::attune Eigen3::Eigen attune::boost)
set(ATTUNE_LINKS_OF_certify attune::attune)
set(ATTUNE_LINKS_OF_testing attune::certify attune::reference)
set(ATTUNE_LINKS_OF_analysis attune::reference)
set(ATTUNE_LINKS_OF_enclosure attune::certify attune::reference attune::mpfi)
set(ATTUNE_LINKS_OF_io attune::attune attune::boost nlohmann_json::nlohmann_json "$<TARGET_NAME_IF_EXISTS:ZLIB::ZLIB>")
set(ATTUNE_LINKS_OF_mpi attune::attune MPI::MPI_CXX)
set(ATTUNE_LINKS_OF_thrust "")  # neither xsimd nor Eigen nor Boost
set(ATTUNE_LINKS_OF_cuda "")  # nor Thrust

# attune_add_components(): attune::<component> for each, or, in attune_<component>_problem, a sentence that says what is missing.
# All are imported, so that a project that exports targets which link them needs no export set of attune's: its users find_package(attune).
macro(attune_add_components)
  foreach(attune_component IN LISTS ATTUNE_COMPONENTS)
    set(attune_problem attune_${attune_component}_problem)
    set(${attune_problem} "")
    if(COMMAND attune_find_${attune_component})
      cmake_language(CALL attune_find_${attune_component} ${attune_problem})
    endif()
    foreach(attune_link IN LISTS ATTUNE_LINKS_OF_${attune_component})
      string(REPLACE "attune::" "" attune_link "${attune_link}")
      if(attune_${attune_link}_problem)
        set(${attune_problem} "${attune_${attune_link}_problem}")
      endif()
    endforeach()
    if(NOT ${attune_problem} AND NOT TARGET attune::${attune_component})
      attune_add_imported(attune::${attune_component})
      target_link_libraries(attune::${attune_component} INTERFACE ${ATTUNE_LINKS_OF_${attune_component}})
      if(COMMAND attune_describe_${attune_component})
        cmake_language(CALL attune_describe_${attune_component} attune::${attune_component})
      endif()
    endif()
  endforeach()
  unset(attune_component)
  unset(attune_problem)
  unset(attune_link)
endmacro()
