# How our own files are compiled against torch's headers (TaasTorch.cmake, which is installed, finds them).

# ProcessGroupGloo.hpp includes gloo headers that the wheel does not ship. Real ones are used only from torch's own folder
# or where TAAS_GLOO_INCLUDE_DIR says: a distribution's are of another version than the gloo inside libtorch.
set(TAAS_GLOO_INCLUDE_DIR "" CACHE PATH "Headers of the gloo that torch was built with (default: our own stubs)")
find_path(_taas_gloo gloo/rendezvous/store.h PATHS "${TAAS_GLOO_INCLUDE_DIR}" "${TAAS_TORCH_DIR}/include"
          NO_DEFAULT_PATH NO_CACHE)
if(NOT _taas_gloo)
  set(_taas_gloo "${CMAKE_CURRENT_SOURCE_DIR}/gloo_stub")
endif()
add_library(taas_gloo_headers INTERFACE)
target_include_directories(taas_gloo_headers SYSTEM INTERFACE "${_taas_gloo}")

# torch's headers take most of the time of a file that includes them. taas_torch_headers(<target>) makes its files start from
# headers that are compiled once. For libraries (static or OBJECT) alone: a program's own files are compiled as -fPIE, which
# GCC does not mix with these. ccache has to be told what may differ.
function(_taas_torch_launcher target)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()

file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp.in" "// The precompiled headers of torch need a target.\n")
configure_file("${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp" COPYONLY)
add_library(taas_torch_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp")
target_link_libraries(taas_torch_headers PRIVATE taas_options taas_torch)
target_precompile_headers(taas_torch_headers PRIVATE <torch/torch.h>)
_taas_torch_launcher(taas_torch_headers)

function(taas_torch_headers target)
  target_precompile_headers(${target} REUSE_FROM taas_torch_headers)
  _taas_torch_launcher(${target})
endfunction()
