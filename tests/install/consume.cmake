# cmake -P: installs BUILD below SCRATCH, then builds and runs CONSUMER with what was installed.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGV}")
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
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

# The examples find the same package; the smallest of them stands for all.
run(${CMAKE_COMMAND} -S ${EXAMPLES} -B ${SCRATCH}/examples -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${prefix} -DTAAS_PYTHON=${PYTHON})
run(${CMAKE_COMMAND} --build ${SCRATCH}/examples --target sampler_tour)

run(${SCRATCH}/consumer/consumer)
if(NOT output STREQUAL "rank 0 of 1, sum 3\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
if(EXISTS ${prefix}/bin/taas-run)
  run(${prefix}/bin/taas-run --nproc-per-node 2 --output ${SCRATCH}/runs ${SCRATCH}/consumer/consumer)
  if(NOT output MATCHES "rank 0 of 2, sum 6\n")
    message(FATAL_ERROR "the consumer under the installed taas-run printed: ${output}")
  endif()
  run(${prefix}/bin/taas-run --nproc-per-node 2 --output ${SCRATCH}/runs ${SCRATCH}/consumer/several_groups)
  if(NOT output MATCHES "ok several_groups")
    message(FATAL_ERROR "several_groups under the installed taas-run printed: ${output}")
  endif()
  run(${prefix}/bin/taas-run --nproc-per-node 1 --output ${SCRATCH}/runs train --help)
  run(${prefix}/bin/taas-run --nproc-per-node 1 --output ${SCRATCH}/runs collectives_tour)
endif()
