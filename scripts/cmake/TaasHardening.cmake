# What makes a mistake in code that reads from a network harder to use; for all targets, since libraries share their objects.
#
#   TAAS_HARDEN   OFF: without it, to measure what it costs (docs/design-build.md)
option(TAAS_HARDEN "Compile with checks of the stack and of buffers, and link with tables that cannot be written" ON)
if(NOT TAAS_HARDEN)
  return()
endif()

# Programs at addresses that nobody can know beforehand.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

add_compile_options(-fstack-protector-strong)
# Marks where jumps may land; free where the processor does not look.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
  add_compile_options(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-mbranch-protection=standard)
endif()

# Calls of the C library with the sizes of buffers, which only an optimiser knows. Sanitizers look for more. Ubuntu's compiler
# defines it by itself.
string(TOUPPER "${CMAKE_BUILD_TYPE}" _taas_type)
if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${_taas_type}}" MATCHES "-O([123sz]|fast)" AND NOT TAAS_SANITIZE AND NOT TAAS_FUZZ)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()

# The tables of other libraries' functions are filled in when a program starts, and are read-only from then on.
add_link_options(-Wl,-z,relro -Wl,-z,now)
