# `cpack -G DEB` in a build folder: the launcher and its Python side for the distribution that it was built on, whose libraries
# it depends on. libtaas is not in it, since that belongs to one torch.
if(NOT PROJECT_IS_TOP_LEVEL OR SKBUILD OR NOT TARGET taas-run)
  return()
endif()

# Debian's zsh looks elsewhere below /usr than below /usr/local.
install(FILES ${PROJECT_BINARY_DIR}/documents/taas-run.zsh DESTINATION share/zsh/vendor-completions
        RENAME _taas-run COMPONENT Debian EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION share/doc/taas-run RENAME copyright COMPONENT Debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL Launcher Debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME taas-run)
set(CPACK_PACKAGE_CONTACT "the taas-run project")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-cloudpickle, python3-torch, openssh-client, slurm-client")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${PROJECT_DESCRIPTION}
 Starts one process for each GPU, on one machine or many, keeps the run alive
 and says what went wrong. Takes torchrun's command lines.")
include(CPack)
