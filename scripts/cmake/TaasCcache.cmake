# Compiles through ccache where there is one that works. That is decided when a build folder is configured for the first time,
# and so is the command line: whatever shell configures the folder again, nothing has to be compiled again.
#
#   TAAS_CCACHE   ON, OFF; by default ON where ccache is found and can write its folder
if(CMAKE_CXX_COMPILER_LAUNCHER OR (DEFINED TAAS_CCACHE AND NOT TAAS_CCACHE))
  return()
endif()

# Asks for a compilation that has to be stored: without a folder to write to (no HOME, a read-only one) ccache fails instead
# of calling the compiler.
function(_taas_probe_ccache result)
  set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/TaasCcache)
  file(WRITE ${folder}/probe.cpp "int probe;\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env CCACHE_RECACHE=1 ${CCACHE_PROGRAM} ${CMAKE_CXX_COMPILER} -c probe.cpp -o probe.o
                  WORKING_DIRECTORY ${folder} RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE error)
  if(status EQUAL 0)
    set(${result} "" PARENT_SCOPE)
  else()
    string(REGEX MATCH "[^\n]+" line "${error}")
    set(${result} "it cannot be used: ${line}" PARENT_SCOPE)
  endif()
endfunction()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  _taas_probe_ccache(_taas_ccache_trouble)
else()
  set(_taas_ccache_trouble "there is none")
endif()
if(_taas_ccache_trouble)
  message(STATUS "Compiling without ccache: ${_taas_ccache_trouble} (-DTAAS_CCACHE=ON looks again)")
  set(_taas_ccache OFF)
else()
  # Precompiled headers are cached too once ccache is told what may differ. The folders of source and build are left out of what
  # is compared, and out of debug information, so that another checkout finds what this one has compiled. `env` is not CMake's,
  # whose path is the configuring shell's.
  set(CMAKE_CXX_COMPILER_LAUNCHER /usr/bin/env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 CCACHE_ABSSTDERR=1 ${CCACHE_PROGRAM})
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  set(CMAKE_UNITY_BUILD_RELOCATABLE ON)  # CMake before 4.0 writes absolute paths: libtaas is then compiled once a checkout
  set(_taas_ccache ON)
endif()
set(TAAS_CCACHE ${_taas_ccache} CACHE BOOL "Compile through ccache")
