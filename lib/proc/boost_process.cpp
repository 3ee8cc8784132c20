// The one translation unit with the sources of Boost.Process v2; not built where Boost brings it as a library.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/src.hpp>
