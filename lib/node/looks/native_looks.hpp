#pragma once

#include <boost/describe/class.hpp>
#include <string>
#include <vector>

#include "proc/inspect/native_stacks.hpp"
#include "run/looks/rank_look.hpp"

namespace taas::node {

/// The flag by which this program names the frames of C++ threads: StackSnapshots come by standard input, NamedStacks
/// go to standard output.
inline constexpr const char* kNameFramesFlag = "--name-frames";

struct NamedStack {
  int tid = 0;
  std::vector<run::SeenFrame> frames;  ///< innermost first; not all
  std::string unread;                  ///< why there are none, if that is worth a word
};
BOOST_DESCRIBE_STRUCT(NamedStack, (), (tid, frames, unread))

/// The frame as one of a look: its file is that of the source, or of the program where it has no lines. What libraries
/// wrote is told from what the user wrote by its file, "<libtorch_cpu.so>" (see is_own_file()).
run::SeenFrame seen_frame(const NativeFrame& frame);

/// Has a child read them, which may crash or hang over files that are damaged. Empty where it does.
std::vector<NamedStack> name_frames(const std::vector<StackSnapshot>& snapshots);

/// What the child does. Returns its exit code.
int name_frames_for_agent();

}  // namespace taas::node
