# Finds libtorch in the torch wheel of a Python interpreter and makes the target taas_torch from it. torch's own package file
# would ask a CUDA wheel's user for a CUDA toolkit and, with CMake before 3.26, for TORCH_CUDA_ARCH_LIST; everything needed is
# in the wheel and in the nvidia wheels beside it.
#
#   TAAS_PYTHON   the interpreter; by default that of the active virtual environment, then <source>/.venv, then python3
#   TAAS_DIST     ON: torch is required; AUTO: without it only the launcher is built; OFF
if(TAAS_DIST STREQUAL "OFF")
  return()
endif()

function(_taas_default_python result)
  foreach(candidate "$ENV{VIRTUAL_ENV}/bin/python" "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    if(EXISTS "${candidate}")
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  find_program(TAAS_SYSTEM_PYTHON python3)
  mark_as_advanced(TAAS_SYSTEM_PYTHON)
  set(${result} "${TAAS_SYSTEM_PYTHON}" PARENT_SCOPE)
endfunction()

if(NOT TAAS_PYTHON)
  _taas_default_python(_taas_python)
  set(TAAS_PYTHON "${_taas_python}" CACHE FILEPATH "Python interpreter whose torch wheel is built against" FORCE)
endif()

# Importing torch takes seconds: ask once for each interpreter and version of the wheel.
function(_taas_query_torch)
  execute_process(COMMAND "${TAAS_PYTHON}" -c "import importlib.metadata as m; print(m.version('torch'))"
                  OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    unset(TAAS_TORCH_FACTS CACHE)
    return()
  endif()
  if(TAAS_TORCH_FACTS AND TAAS_TORCH_QUERIED STREQUAL "${TAAS_PYTHON} ${version}")
    return()
  endif()
  execute_process(
    COMMAND "${TAAS_PYTHON}" -c
            "import os, torch; print(os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI), torch.__version__, sep=';')"
    OUTPUT_VARIABLE facts OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE error RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(WARNING "${TAAS_PYTHON} has torch ${version} but cannot import it:\n${error}")
    unset(TAAS_TORCH_FACTS CACHE)
    return()
  endif()
  set(TAAS_TORCH_FACTS "${facts}" CACHE INTERNAL "folder, C++11 ABI and version of torch")
  set(TAAS_TORCH_QUERIED "${TAAS_PYTHON} ${version}" CACHE INTERNAL "")
endfunction()

_taas_query_torch()
if(NOT TAAS_TORCH_FACTS)
  if(TAAS_DIST STREQUAL "ON")
    message(FATAL_ERROR "TAAS_DIST is ON, but ${TAAS_PYTHON} cannot import torch: set TAAS_PYTHON to one that can, "
                        "or TAAS_DIST to OFF")
  endif()
  message(STATUS "No torch in ${TAAS_PYTHON}: building the launcher without the training library (TAAS_DIST)")
  return()
endif()

list(GET TAAS_TORCH_FACTS 0 TAAS_TORCH_DIR)
list(GET TAAS_TORCH_FACTS 1 TAAS_TORCH_CXX11_ABI)
list(GET TAAS_TORCH_FACTS 2 TAAS_TORCH_VERSION)
set(_taas_torch_lib "${TAAS_TORCH_DIR}/lib")

add_library(taas_torch INTERFACE)
target_include_directories(taas_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${TAAS_TORCH_DIR}/include>"
                           "$<BUILD_INTERFACE:${TAAS_TORCH_DIR}/include/torch/csrc/api/include>")
target_compile_definitions(taas_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${TAAS_TORCH_CXX11_ABI} USE_DISTRIBUTED)
target_link_libraries(taas_torch INTERFACE "${_taas_torch_lib}/libtorch_cpu.so" "${_taas_torch_lib}/libc10.so")
# Binaries run where they were built, without LD_LIBRARY_PATH.
target_link_options(taas_torch INTERFACE "LINKER:-rpath,${_taas_torch_lib}")

# A CUDA wheel's libraries need those of the nvidia wheels beside it. They find each other when they are loaded; the linker has
# to be told.
get_filename_component(_taas_site "${TAAS_TORCH_DIR}" DIRECTORY)
file(GLOB _taas_nvidia_libs LIST_DIRECTORIES true "${_taas_site}/nvidia/*/lib")
foreach(folder IN LISTS _taas_nvidia_libs)
  target_link_options(taas_torch INTERFACE "LINKER:-rpath-link,${folder}")
endforeach()
message(STATUS "torch ${TAAS_TORCH_VERSION} from ${TAAS_TORCH_DIR}")
