# attune_docs: the API reference, built from the headers' comments into <build>/docs/api. scripts/docs builds it together with the pages.
find_package(Doxygen REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(attune_docs
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/docs/site/api.py" --doxygen "${DOXYGEN_EXECUTABLE}" "${CMAKE_CURRENT_BINARY_DIR}/docs"
  COMMENT "API reference: ${CMAKE_CURRENT_BINARY_DIR}/docs/api/index.html"
  VERBATIM)
