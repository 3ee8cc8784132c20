# cmake -P: installs BUILD below SCRATCH, then builds and runs CONSUMER with what was installed.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGV}")
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# What the consumer prints on its own, however it was built.
function(check_alone program)
  run(${program})
  if(NOT output STREQUAL "rank 0 of 1, sum 3\n")
    message(FATAL_ERROR "${program} printed: ${output}")
  endif()
endfunction()

set(prefix ${SCRATCH}/prefix)
file(REMOVE_RECURSE ${prefix} ${SCRATCH}/consumer)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# What is installed looks for nothing in the build tree, which may go away.
file(GLOB_RECURSE installed ${prefix}/bin/* ${prefix}/lib*/*)
foreach(file IN LISTS installed)
  file(STRINGS ${file} found REGEX "${BUILD}/")
  if(found)
    message(FATAL_ERROR "${file} refers to the build tree: ${found}")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/consumer -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${prefix} -DTAAS_PYTHON=${PYTHON})
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)

# Without Python: the folder of a libtorch is enough, and it is one of the same release or none.
set(libtorch ${SCRATCH}/libtorch)
file(REMOVE_RECURSE ${libtorch} ${SCRATCH}/other_libtorch)
file(MAKE_DIRECTORY ${libtorch} ${SCRATCH}/other_libtorch/share/cmake/Torch)
foreach(part include lib share)
  file(CREATE_LINK ${TORCH}/${part} ${libtorch}/${part} SYMBOLIC)
endforeach()
get_filename_component(site ${TORCH} DIRECTORY)
file(CREATE_LINK ${site}/nvidia ${SCRATCH}/nvidia SYMBOLIC)  # what a wheel's libraries find from where they are
set(without_python ${CMAKE_COMMAND} -E env --unset=VIRTUAL_ENV ${CMAKE_COMMAND} -S ${CONSUMER} -G Ninja
    -DCMAKE_CXX_COMPILER=${COMPILER})
run(${without_python} -B ${SCRATCH}/without_python "-DCMAKE_PREFIX_PATH=${prefix}\;${libtorch}")
if(NOT output MATCHES "torch [0-9.]+ from ${libtorch}\n")
  message(FATAL_ERROR "not the libtorch that CMAKE_PREFIX_PATH leads to: ${output}")
endif()
run(${CMAKE_COMMAND} --build ${SCRATCH}/without_python --target consumer)
check_alone(${SCRATCH}/without_python/consumer)
file(WRITE ${SCRATCH}/other_libtorch/share/cmake/Torch/TorchConfigVersion.cmake "set(PACKAGE_VERSION \"2.3.0\")\n")
file(WRITE ${SCRATCH}/other_libtorch/share/cmake/Torch/TorchConfig.cmake "")
execute_process(COMMAND ${without_python} -B ${SCRATCH}/other_torch "-DCMAKE_PREFIX_PATH=${prefix};${SCRATCH}/other_libtorch"
                RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_QUIET)
if(status EQUAL 0 OR NOT output MATCHES "but[ \n]+${SCRATCH}/other_libtorch[ \n]+is[ \n]+2.3.0")
  message(FATAL_ERROR "a libtorch of another release was not refused: ${output}")
endif()

# pkg-config says the same.
find_program(pkg_config pkg-config REQUIRED)
file(GLOB_RECURSE description ${prefix}/*/taas.pc)
get_filename_component(description ${description} DIRECTORY)
run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${description} ${pkg_config} --cflags --libs taas)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${COMPILER} -std=c++20 ${CONSUMER}/consumer.cpp -o ${SCRATCH}/packaged ${flags})
check_alone(${SCRATCH}/packaged)

# As a part of another project, which is compiled with it: in the full run, since that takes minutes.
run(${CMAKE_COMMAND} -S ${FETCHED} -B ${SCRATCH}/fetched -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER} -DTAAS_PYTHON=${PYTHON}
    -DFETCHCONTENT_SOURCE_DIR_TAAS=${SOURCE} -DCONSUMER=${CONSUMER})
if("$ENV{TAAS_FULL}" STREQUAL "")
  run(${CMAKE_COMMAND} --build ${SCRATCH}/fetched --target fetched_code)
else()
  run(${CMAKE_COMMAND} --build ${SCRATCH}/fetched --target fetched)
  check_alone(${SCRATCH}/fetched/fetched)
endif()

# The examples find the same package; the smallest of them stands for all.
run(${CMAKE_COMMAND} -S ${EXAMPLES} -B ${SCRATCH}/examples -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${prefix} -DTAAS_PYTHON=${PYTHON})
run(${CMAKE_COMMAND} --build ${SCRATCH}/examples --target sampler_tour)

check_alone(${SCRATCH}/consumer/consumer)
if(EXISTS ${prefix}/bin/taas-run)
  run(${prefix}/bin/taas-run --nproc-per-node 2 --output ${SCRATCH}/runs ${SCRATCH}/consumer/consumer)
  if(NOT output MATCHES "rank 0 of 2, sum 6\n")
    message(FATAL_ERROR "the consumer under the installed taas-run printed: ${output}")
  endif()
  foreach(program batch_norm_over_ranks custom_hook ddp_options mixed_precision resume several_groups sharded_optimizer
                  uneven_inputs)
    run(${prefix}/bin/taas-run --nproc-per-node 2 --output ${SCRATCH}/runs ${SCRATCH}/consumer/${program})
    if(NOT output MATCHES "ok ${program}")
      message(FATAL_ERROR "${program} under the installed taas-run printed: ${output}")
    endif()
  endforeach()
  run(${prefix}/bin/taas-run --nproc-per-node 1 --output ${SCRATCH}/runs train --help)
  run(${prefix}/bin/taas-run --nproc-per-node 1 --output ${SCRATCH}/runs collectives_tour)
endif()
