#pragma once

#include <cstddef>

// A CUDA without a GPU: memory that is registered, and streams whose work is done when a test says so. The names that
// the product looks up are in fake_cuda.cpp; these are for tests, C++ and (by ctypes) Python.
extern "C" {
void fake_cuda_reset();
/// The program begins to use a device; there are two.
void fake_cuda_use_device(int device);
/// Asks a stream for a copy. The source is read when the copy runs.
void fake_cuda_copy(void* stream, void* to, const void* from, std::size_t bytes);
/// All work of all streams is done.
void fake_cuda_run();
void fake_cuda_capture(void* stream, int begins);
/// What cudaHostRegister answers from now on.
void fake_cuda_refuse(int status);
/// Whether all of this memory is registered.
int fake_cuda_is_registered(const void* memory, std::size_t bytes);
int fake_cuda_registrations();
/// How many calls were made that a program may not make, or that would have initialised a device or ended a capture.
int fake_cuda_mistakes();
}
