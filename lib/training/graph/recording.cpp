#include "training/graph/recording.hpp"

namespace taas {
namespace {
thread_local int recording_depth = 0;
}

bool recording() { return recording_depth > 0; }
RecordingScope::RecordingScope() { ++recording_depth; }
RecordingScope::~RecordingScope() { --recording_depth; }

}  // namespace taas
