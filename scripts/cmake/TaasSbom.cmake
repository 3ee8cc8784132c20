# The bill of materials of what a wheel and a Debian package contain (CycloneDX), where the interpreter has the library that
# writes it (scripts/requirements-package.txt). TaasInstall.cmake says where it goes.
execute_process(COMMAND "${TAAS_NATIVE_PYTHON}" -c "import packageurl; from cyclonedx.model.bom import Bom; Bom().metadata.tools.components"
                RESULT_VARIABLE _status OUTPUT_QUIET ERROR_QUIET)
if(NOT _status EQUAL 0)
  message(STATUS "No cyclonedx-python-lib from 8 on in ${TAAS_NATIVE_PYTHON}: no bill of materials "
                 "(pip install -r scripts/requirements-package.txt)")
  return()
endif()
set(_taas_linking shared)
if(TAAS_STATIC)
  set(_taas_linking static)
endif()
set(_taas_headers ${Boost_INCLUDE_DIRS} ${OPENSSL_INCLUDE_DIR} ${TAAS_TOML_HEADERS} ${TAAS_SPDLOG_HEADERS} ${TAAS_XXHASH_INCLUDE}
                  ${TAAS_LZ4_INCLUDE} ${TAAS_ZSTD_INCLUDE})
foreach(_library CLI11::CLI11 fmt::fmt)
  get_target_property(_folders ${_library} INTERFACE_INCLUDE_DIRECTORIES)
  if(_folders)
    list(APPEND _taas_headers ${_folders})
  endif()
endforeach()
list(APPEND _taas_headers ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
list(FILTER _taas_headers EXCLUDE REGEX "^\\$<")
list(REMOVE_DUPLICATES _taas_headers)
set(_taas_sbom ${PROJECT_BINARY_DIR}/documents/taas-run.cdx.json)
add_custom_command(OUTPUT ${_taas_sbom} DEPENDS ${PROJECT_SOURCE_DIR}/scripts/cmake/write_sbom.py VERBATIM
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/documents
  COMMAND ${TAAS_NATIVE_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/cmake/write_sbom.py ${_taas_sbom} ${PROJECT_VERSION}
          ${_taas_linking} ${_taas_headers})
add_custom_target(taas_sbom ALL DEPENDS ${_taas_sbom})
install(FILES ${_taas_sbom} DESTINATION ${_taas_sboms} COMPONENT Launcher)
