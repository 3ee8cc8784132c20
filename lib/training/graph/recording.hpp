#pragma once

namespace taas {

/// Whether this thread's GPU work is being recorded instead of done: then nothing of a step that lives on the host may
/// change, since it would not change again when the record is replayed.
bool recording();

class RecordingScope {
 public:
  RecordingScope();
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

}  // namespace taas
