# What `cmake --install` puts where: taas-run into bin; the programs that it finds by name into libexec/taas; libtaas with
# its headers and a package file, so that find_package(taas) gives the target taas::taas.
include(CMakePackageConfigHelpers)
set(_taas_programs ${CMAKE_INSTALL_LIBEXECDIR}/taas)
set(_taas_package ${CMAKE_INSTALL_LIBDIR}/cmake/taas)

if(TARGET taas-run)
  install(TARGETS taas-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(NOT TARGET taas_dist)
  return()
endif()

list(GET TAAS_TORCH_FACTS 0 TAAS_TORCH_DIR)
list(GET TAAS_TORCH_FACTS 2 TAAS_TORCH_VERSION)

# One shared library: a program then needs neither our own static parts nor the packages they are made with. libtorch is
# found where it was at build time; the nccl plugin lies beside the library.
add_library(taas SHARED $<TARGET_OBJECTS:taas_dist> $<TARGET_OBJECTS:taas_data> $<TARGET_OBJECTS:taas_net>
                        $<TARGET_OBJECTS:taas_base>)
set_target_properties(taas PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib INSTALL_RPATH "$ORIGIN;${TAAS_TORCH_DIR}/lib")
target_compile_features(taas PUBLIC cxx_std_20)
target_include_directories(taas INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(taas PRIVATE $<BUILD_INTERFACE:taas_options> $<BUILD_INTERFACE:taas_torch> fmt::fmt Boost::json OpenSSL::SSL
                                   OpenSSL::Crypto ${TAAS_LZ4} ${TAAS_ZSTD} Threads::Threads ${CMAKE_DL_LIBS}
                           INTERFACE $<INSTALL_INTERFACE:taas::libtorch>)

install(TARGETS taas EXPORT taas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT Development)
install(DIRECTORY include/taas DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
install(EXPORT taas FILE taasTargets.cmake NAMESPACE taas:: DESTINATION ${_taas_package} COMPONENT Development)
configure_package_config_file(scripts/cmake/taasConfig.cmake.in ${CMAKE_BINARY_DIR}/taasConfig.cmake
  INSTALL_DESTINATION ${_taas_package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/taasConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/taasConfig.cmake ${CMAKE_BINARY_DIR}/taasConfigVersion.cmake
              scripts/cmake/TaasTorch.cmake DESTINATION ${_taas_package} COMPONENT Development)
if(TARGET taas_nccl)
  install(TARGETS taas_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(TARGET train)
  file(RELATIVE_PATH _taas_up ${CMAKE_INSTALL_PREFIX}/${_taas_programs} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(train PROPERTIES INSTALL_RPATH "$ORIGIN/${_taas_up};${TAAS_TORCH_DIR}/lib")
  install(TARGETS train RUNTIME DESTINATION ${_taas_programs})
endif()

if(TAAS_TESTS)
  add_subdirectory(tests/install)
endif()
