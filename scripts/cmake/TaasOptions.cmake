# What every target of the project is compiled with. Warnings are errors where the project checks itself, not where it is
# built: a newer compiler has warnings that nobody here has seen.
option(TAAS_WERROR "Make warnings errors" OFF)
include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # there are none, and looking for them reads every file twice
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

include(TaasCcache)
include(TaasHardening)

# Programs of the build folder have the run path that is installed. One that CMake replaces at installation ends in an empty
# element, which the loader takes for the current folder: whoever can write there would bring the libraries.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

add_library(taas_options INTERFACE)
target_compile_options(taas_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                              -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # gcc's flow analysis is wrong about code of the standard library and of Boost that it has inlined, in other places with each
  # release and each level of optimisation: moves of std::optional and std::variant (gcc bug 80635), std::string (105651),
  # std::vector (107852). clang and the sanitizers look for the same mistakes.
  target_compile_options(taas_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
                                                -Wno-stringop-overflow -Wno-stringop-overread)
  # gcc 13 brought this warning, and took many of its false alarms back in 14, where it stays on.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    target_compile_options(taas_options INTERFACE -Wno-dangling-reference)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # std::stable_sort of libstdc++ 12 calls a function that it marks as deprecated, and clang reports that in our code from 17 on.
  # gcc reports what really is deprecated.
  target_compile_options(taas_options INTERFACE -Wno-deprecated-declarations)
endif()
# Not under sanitizers: their checks lead gcc's flow analysis to more false alarms. The other presets see the same code.
if(TAAS_WERROR AND NOT TAAS_SANITIZE)
  target_compile_options(taas_options INTERFACE -Werror)
endif()
# The launcher is a small program that is started often: no dynamic look-up of the C++ runtime, no unused sections.
target_compile_options(taas_options INTERFACE -ffunction-sections -fdata-sections)
target_link_options(taas_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)

if(TAAS_SANITIZE)
  add_compile_options(-fsanitize=${TAAS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TAAS_SANITIZE})
  # gcc warns that ThreadSanitizer does not see fences; Asio's are inside its own locks.
  if(TAAS_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-tsan)
  endif()
endif()
