# What makes compiling faster.
#
# Most of what a small file costs is what its headers bring: templates are instantiated again in every file. So the files
# of a target go through the compiler in batches, which takes a third of the time; names in unnamed namespaces are
# therefore unique within a target. -DTAAS_UNITY=OFF compiles each file alone: for work on a few files, and to see that
# every file includes what it uses.
option(TAAS_UNITY "Compile the files of a target in batches" ON)
set(CMAKE_UNITY_BUILD ${TAAS_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
if(TAAS_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wno-subobject-linkage)  # gcc takes every file of a batch for a header
endif()

# Headers of other projects take most of the time of a small file. taas_headers(<name> LINKS … HEADERS …) compiles some once, as
# a target, and taas_use_headers(<name> <target>…) makes the files of a target start from them. Both have to be compiled
# alike: what differs is an error (-Winvalid-pch). Files still include what they use, and compile without this
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON).
function(taas_headers name)
  cmake_parse_arguments(arg "" "" "LINKS;HEADERS" ${ARGN})
  # A target needs a source; this one is written only when it changes.
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// The precompiled headers ${name} need a target.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(${name} PRIVATE taas_options ${arg_LINKS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# An executable's files are then compiled as a library's are: GCC does not mix -fPIE and -fPIC.
function(taas_use_headers name)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${name})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endforeach()
endfunction()
