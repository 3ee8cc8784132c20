#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas {

struct PythonFrame {
  std::string function;  ///< with its class and the functions around it from 3.11 on: "Trainer.step"
  std::string file;      ///< as the code object names it
  int line = 0;          ///< that a traceback would show; 0 where there is none
};

struct PythonThread {
  int tid = 0;                      ///< the kernel's number, as the process itself sees it; 0 where that is not known
  bool holds_gil = false;           ///< never where there is no GIL
  std::vector<PythonFrame> frames;  ///< innermost first; none in a thread that is in no Python function
};

struct PythonStacks {
  std::string version;                ///< "3.11"
  std::vector<PythonThread> threads;  ///< the main thread first
};

/// Reads where the threads of a Python process are, by its memory alone: the process is neither stopped nor asked. It
/// knows CPython 3.9 to 3.15. Remembers where it found the interpreter and the functions of a process, so that a later
/// read costs little.
class PythonReader {
 public:
  PythonReader();
  ~PythonReader();
  PythonReader(PythonReader&&) noexcept;
  PythonReader& operator=(PythonReader&&) noexcept;

  /// Nothing for a process that has no interpreter, or none that runs by now. Since the process runs on, a stack that
  /// changes too fast is cut to what stood still long enough to be read: its outer frames. What makes no sense is read
  /// again some times, and then is an error. Other errors: the process has ended; the system forbids it (the message
  /// names what would let it); an interpreter of another version.
  Result<std::optional<PythonStacks>> read(int pid, std::size_t most_frames = 48);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace taas
