#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "taas/error.hpp"
#include "training/checkpoint/foreign_file.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/zero/shard_sets.hpp"

// What the files of a sharded checkpoint have in common: dictionaries that say what they are.

namespace taas {

constexpr const char* kSetPrefix = "save-";

/// A dictionary that begins with its format and version.
c10::impl::GenericDict described(const char* format);
/// The value as such a dictionary. Throws CheckpointError, which names the path, for another format or version.
c10::impl::GenericDict checked_format(const c10::IValue& value, const char* format, const std::string& path);

c10::IValue value_of(const ShardSet& set);
/// Throws where the name is none that a save has made: files of sets are removed.
ShardSet set_from(const c10::IValue& value);

/// Writes the file, whole or not at all; returns its bytes. Throws CheckpointError.
std::size_t publish_value(const std::string& path, const c10::IValue& value);

/// Runs what reads the file. Whatever goes wrong comes out as a CheckpointError that names it.
template <class Read>
auto reading(const std::string& path, Read&& read) {
  std::error_code failure;
  [[maybe_unused]] const auto bytes = std::filesystem::file_size(path, failure);
  if (failure) throw CheckpointError("cannot read " + path + ": " + failure.message());
  try {
    return read();
  } catch (const CheckpointError&) {
    throw;
  } catch (const UnknownObject& unknown) {
    throw CheckpointError(path + " holds " + unknown.what + ": it was not written by save_shards()");
  } catch (const std::exception&) {  // torch's own words are many lines about zip and pickle
    throw CheckpointError(path + explain_unreadable(path));
  }
}

}  // namespace taas
