#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace taas::test {

/// Of the files of one test, whose processes have the same parent, or are it.
inline std::filesystem::path shard_files_folder(pid_t test) {
  return std::filesystem::temp_directory_path() / ("taas-shard-files-" + std::to_string(test));
}

/// That of this test's ranks; gone with the test.
struct ShardFilesFolder {
  std::filesystem::path path = shard_files_folder(::getpid());
  ShardFilesFolder() { std::filesystem::create_directories(path); }
  ~ShardFilesFolder() { std::filesystem::remove_all(path); }
  ShardFilesFolder(const ShardFilesFolder&) = delete;
  ShardFilesFolder& operator=(const ShardFilesFolder&) = delete;
};

}  // namespace taas::test
