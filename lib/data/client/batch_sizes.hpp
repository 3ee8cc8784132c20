#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

namespace taas::data {

/// How large batches are, as far as they have come.
class BatchSizes {
 public:
  /// True: no batch has been as large before.
  bool note(const std::string& definition, std::size_t bytes) {
    if (bytes > 0) last_[definition] = bytes;
    const bool is_largest = bytes > largest_;
    largest_ = std::max(largest_, bytes);
    return is_largest;
  }
  /// As the last one of this definition; 0: not known.
  [[nodiscard]] std::size_t expected(const std::string& definition) const {
    const auto size = last_.find(definition);
    return size == last_.end() ? 0 : size->second;
  }
  /// Of all; 0: there was none.
  [[nodiscard]] std::size_t largest() const { return largest_; }

 private:
  std::map<std::string, std::size_t> last_;
  std::size_t largest_ = 0;
};

}  // namespace taas::data
