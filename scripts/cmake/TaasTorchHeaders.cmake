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
# Not for programs on libtaas, which have no such headers: torch's own are empty without it.
target_compile_definitions(taas_gloo_headers INTERFACE USE_C10D_GLOO)

# torch's headers take most of the time of a file that includes them. For libraries (static or OBJECT) alone: what a program
# is linked with differs.
taas_headers(taas_torch_headers LINKS taas_torch HEADERS <torch/torch.h>)

function(taas_torch_headers target)
  taas_use_headers(taas_torch_headers ${target})
endfunction()
