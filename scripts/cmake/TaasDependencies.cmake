# The chosen packages, from the distribution. Boost.Process v2 is header-only up to 1.85 and a compiled library from 1.86.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS filesystem json)
if(Boost_VERSION VERSION_GREATER_EQUAL 1.86)
  find_package(Boost 1.86 REQUIRED COMPONENTS process)
endif()
find_package(OpenSSL 3.0 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
