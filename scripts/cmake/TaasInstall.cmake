# What `cmake --install` puts where: taas-run into bin, with its manual page and completions; the programs that it finds by
# name into libexec/taas; libtaas with its headers and a package file, so that find_package(taas) gives the target
# taas::taas. lib/python installs the Python side itself.
include(CMakePackageConfigHelpers)
set(_taas_programs ${CMAKE_INSTALL_LIBEXECDIR}/taas)
set(_taas_package ${CMAKE_INSTALL_LIBDIR}/cmake/taas)
set(_taas_bin ${CMAKE_INSTALL_BINDIR})
set(_taas_share ${CMAKE_INSTALL_DATADIR})
if(SKBUILD)
  set(_taas_bin ${SKBUILD_SCRIPTS_DIR})
  set(_taas_share ${SKBUILD_DATA_DIR}/share)
endif()

if(TARGET taas-run)
  set(_taas_documents ${PROJECT_BINARY_DIR}/documents)
  install(TARGETS taas-run RUNTIME DESTINATION ${_taas_bin} COMPONENT Launcher)
  install(FILES ${_taas_documents}/taas-run.1 DESTINATION ${_taas_share}/man/man1 COMPONENT Launcher)
  install(FILES ${_taas_documents}/taas-run.bash DESTINATION ${_taas_share}/bash-completion/completions
          RENAME taas-run COMPONENT Launcher)
  install(FILES ${_taas_documents}/taas-run.fish DESTINATION ${_taas_share}/fish/vendor_completions.d COMPONENT Launcher)
  install(FILES ${_taas_documents}/taas-run.zsh DESTINATION ${_taas_share}/zsh/site-functions
          RENAME _taas-run COMPONENT Completions)
endif()
# What other projects' code in the binaries asks for its notice (Boost's licence does not, for object code): nanobind, what
# consists of headers, and in a wheel what is linked in. Debian keeps each package's with its headers.
set(_taas_notices ${_taas_share}/doc/taas-run)
set(_taas_sboms ${_taas_share}/doc/taas-run)
if(SKBUILD)
  set(_taas_notices ${SKBUILD_METADATA_DIR}/licenses)
  set(_taas_sboms ${SKBUILD_METADATA_DIR}/sboms)
endif()
set(_taas_contained cli11 spdlog tomlplusplus xxhash)
if(TAAS_STATIC)
  list(APPEND _taas_contained fmt lz4 ssl zstd)
endif()
foreach(_library IN LISTS _taas_contained)
  if(EXISTS /usr/share/doc/lib${_library}-dev/copyright)
    install(FILES /usr/share/doc/lib${_library}-dev/copyright DESTINATION ${_taas_notices} RENAME lib${_library}-dev.txt
            COMPONENT Launcher)
  endif()
endforeach()
if(TARGET taas_native)
  execute_process(COMMAND ${TAAS_NATIVE_PYTHON} -c "import importlib.metadata as m; print(*[f.locate() for f in \
m.files('nanobind') if f.name == 'LICENSE'], sep=';')" OUTPUT_VARIABLE _notice OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_notice)
    install(FILES ${_notice} DESTINATION ${_taas_notices} RENAME nanobind.txt COMPONENT Launcher)
  endif()
endif()
if(TARGET taas-run AND TAAS_NATIVE_PYTHON)
  include(TaasSbom)
endif()
include(TaasPackage)
if(NOT TARGET taas_training)
  return()
endif()

list(GET TAAS_TORCH_FACTS 0 TAAS_TORCH_DIR)
list(GET TAAS_TORCH_FACTS 2 TAAS_TORCH_VERSION)

# One shared library: a program then needs neither our own static parts nor the packages they are made with. libtorch is
# found where it was at build time; the nccl plugin lies beside the library.
add_library(taas SHARED $<TARGET_OBJECTS:taas_training> $<TARGET_OBJECTS:taas_base>)
set_target_properties(taas PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib INSTALL_RPATH "$ORIGIN")
target_compile_features(taas PUBLIC cxx_std_20)
target_include_directories(taas INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(taas PRIVATE $<BUILD_INTERFACE:taas_options> $<BUILD_INTERFACE:taas_torch> fmt::fmt Boost::json
                                   Threads::Threads ${CMAKE_DL_LIBS}
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

# Programs find the nccl plugin. The build folder has them with the same run path, where it must not lead out of that folder: it
# goes through `taas`, the name of the folder that they are installed in, which the build folder's bin has not beside it.
file(RELATIVE_PATH _taas_up ${CMAKE_INSTALL_PREFIX}/${_taas_programs} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(_taas_program IN LISTS taas_examples ITEMS train)
  if(TARGET ${_taas_program})
    set_target_properties(${_taas_program} PROPERTIES INSTALL_RPATH "$ORIGIN/../taas/${_taas_up}")
    install(TARGETS ${_taas_program} RUNTIME DESTINATION ${_taas_programs})
  endif()
endforeach()

if(TAAS_TESTS)
  add_subdirectory(tests/install)
endif()
