# A wheel out of a build folder that is there already: pip wheel . --config-settings=cmake.define.TAAS_PREBUILT=<build>. Nothing is
# compiled; the folder's interpreter has to be the wheel's.
set(_stage ${CMAKE_CURRENT_BINARY_DIR}/stage)
file(REMOVE_RECURSE ${_stage})
foreach(component Launcher Completions)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${TAAS_PREBUILT} --prefix ${_stage} --component ${component} --strip
                  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endforeach()
install(PROGRAMS ${_stage}/bin/taas-run DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT Launcher)
install(DIRECTORY ${_stage}/lib/taas/python/taas DESTINATION ${SKBUILD_PLATLIB_DIR} COMPONENT Launcher)
install(DIRECTORY ${_stage}/share DESTINATION ${SKBUILD_DATA_DIR} COMPONENT Launcher PATTERN doc EXCLUDE)
file(GLOB _notices ${_stage}/share/doc/taas-run/*.txt)
install(FILES ${_notices} DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT Launcher)
file(GLOB _sboms ${_stage}/share/doc/taas-run/*.cdx.json)
install(FILES ${_sboms} DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT Launcher)
install(DIRECTORY ${_stage}/lib/taas/python DESTINATION ${SKBUILD_DATA_DIR}/lib/taas COMPONENT Launcher
        PATTERN taas EXCLUDE)
