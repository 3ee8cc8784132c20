# The CUDA half of torch, for the one plugin that needs it: the target taas_torch_cuda, where the wheel is a CUDA one and all that
# nccl.h includes is found. Takes what TaasTorch.cmake has set. What is missing is named; libtaas is then built without nccl.
#
# Each nvidia wheel has an include folder: nvidia/cu13/include for all parts of the toolkit, or one a part in older layouts. What
# they leave out is taken from where else it often is:
#   crt          triton, a CUDA toolkit
#   nv/target    (CCCL, which torch 2.11 does not bring) cupy, cuda-cccl, a CUDA toolkit
# A toolkit is where CUDAToolkit_ROOT, CUDA_HOME or CUDA_PATH says, and in /usr/local/cuda when none says anything.
if(NOT EXISTS "${TAAS_TORCH_DIR}/lib/libtorch_cuda.so")
  message(STATUS "torch is without CUDA: building without nccl")
  return()
endif()

# The interpreter's own packages as well: torch may be borrowed from another environment.
get_filename_component(_taas_site "${TAAS_TORCH_DIR}" DIRECTORY)
get_filename_component(_taas_prefix "${TAAS_PYTHON}" DIRECTORY)
get_filename_component(_taas_prefix "${_taas_prefix}" DIRECTORY)
file(GLOB _taas_sites LIST_DIRECTORIES true "${_taas_prefix}/lib/python3*/site-packages")
list(PREPEND _taas_sites "${_taas_site}")
set(_taas_wheels "")
set(_taas_others "")
foreach(site IN LISTS _taas_sites)
  file(GLOB folders LIST_DIRECTORIES true "${site}/nvidia/*/include")
  list(APPEND _taas_wheels ${folders})
  list(APPEND _taas_others "${site}/triton/backends/nvidia/include" "${site}/cupy/_core/include/cupy/_cccl/libcudacxx"
              "${site}/cuda/cccl/headers/include")
endforeach()
set(_taas_toolkits ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
if(NOT _taas_toolkits)
  set(_taas_toolkits /usr/local/cuda)
endif()
list(TRANSFORM _taas_toolkits APPEND /include)
list(APPEND _taas_others ${_taas_toolkits})

# The names of the wheels differ: those of CUDA 12 carry its number.
set(_taas_crt nvidia-cuda-crt)
set(_taas_part "")
set(_taas_nccl nvidia-nccl-cu13)
if(TAAS_TORCH_VERSION MATCHES "[+]cu12")
  set(_taas_crt nvidia-cuda-nvcc-cu12)
  set(_taas_part -cu12)
  set(_taas_nccl nvidia-nccl-cu12)
endif()

set(_taas_cuda_includes "")
set(_taas_cuda_absent "")
# _taas_cuda_header(<header> <wheel that has it> <folders>…)
function(_taas_cuda_header header wheel)
  unset(found)
  find_path(found ${header} PATHS ${ARGN} PATH_SUFFIXES cccl NO_DEFAULT_PATH NO_CACHE)
  if(found)
    set(_taas_cuda_includes ${_taas_cuda_includes} "${found}" PARENT_SCOPE)
  else()
    set(_taas_cuda_absent ${_taas_cuda_absent} "${header} (pip install ${wheel})" PARENT_SCOPE)
  endif()
endfunction()
_taas_cuda_header(nccl.h ${_taas_nccl} ${_taas_wheels})
_taas_cuda_header(cuda_runtime_api.h nvidia-cuda-runtime${_taas_part} ${_taas_wheels})
_taas_cuda_header(crt/host_config.h ${_taas_crt} ${_taas_wheels} ${_taas_others})
_taas_cuda_header(nv/target nvidia-cuda-cccl${_taas_part} ${_taas_wheels} ${_taas_others})
list(REMOVE_DUPLICATES _taas_cuda_includes)
if(_taas_cuda_absent)
  list(JOIN _taas_cuda_absent ", " _taas_cuda_absent)
  message(STATUS "Building without nccl, for want of headers: ${_taas_cuda_absent}")
  return()
endif()

# Headers of different releases need not fit: let the compiler say. What compiles is not asked again.
set(_taas_question "${CMAKE_CXX_COMPILER};${TAAS_TORCH_VERSION};${_taas_cuda_includes}")
if(NOT TAAS_NCCL_COMPILES OR NOT TAAS_NCCL_ASKED STREQUAL _taas_question)
  set(_taas_folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/TaasTorchCuda")
  file(WRITE "${_taas_folder}/nccl.cpp" "#include <nccl.h>\nint main() {}\n")
  try_compile(TAAS_NCCL_COMPILES "${_taas_folder}" SOURCES "${_taas_folder}/nccl.cpp"
              CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${_taas_cuda_includes}" OUTPUT_VARIABLE _taas_output)
  set(TAAS_NCCL_ASKED "${_taas_question}" CACHE INTERNAL "what TAAS_NCCL_COMPILES is about")
endif()
if(NOT TAAS_NCCL_COMPILES)
  string(REGEX MATCH "[^\n]*error: [^\n]*" _taas_error "${_taas_output}")
  message(STATUS "Building without nccl, since its headers do not compile: ${_taas_error}")
  return()
endif()

add_library(taas_torch_cuda INTERFACE)
target_include_directories(taas_torch_cuda SYSTEM INTERFACE ${_taas_cuda_includes})
target_compile_definitions(taas_torch_cuda INTERFACE USE_C10D_NCCL)
target_link_libraries(taas_torch_cuda INTERFACE taas_torch "${TAAS_TORCH_DIR}/lib/libtorch_cuda.so"
                                                "${TAAS_TORCH_DIR}/lib/libc10_cuda.so")
message(STATUS "With nccl, from ${_taas_site}")
