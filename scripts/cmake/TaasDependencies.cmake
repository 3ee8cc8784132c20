# The chosen packages, from the distribution.
#
# TAAS_STATIC is for what leaves this machine alone, as the wheel does: of the packages nothing but the C library is needed
# where it runs. A distribution's package links what the distribution keeps up to date instead.
option(TAAS_STATIC "Link the packages and the C++ runtime into taas-run and the Python module" OFF)
if(TAAS_STATIC)
  set(Boost_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS filesystem json)
find_package(OpenSSL 3.0 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
# Their headers are all that is used, and nothing of them is linked.
find_path(TAAS_TOML_HEADERS toml++/toml.h REQUIRED DOC "The folder of toml++/toml.h (libtomlplusplus-dev)")
find_path(TAAS_SPDLOG_HEADERS spdlog/spdlog.h REQUIRED DOC "The folder of spdlog/spdlog.h (libspdlog-dev)")

if(TAAS_STATIC)
  # Debian has no static fmt: its headers hold all of it, and the linker then leaves the shared library out.
  set_property(TARGET fmt::fmt APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  target_link_options(taas_options INTERFACE -static-libstdc++ -static-libgcc)
endif()
