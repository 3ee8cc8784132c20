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
