#pragma once

#include <string_view>

namespace taas::ui {

/// Takes text for a descriptor. One call's text is never mixed with another's.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
};

}  // namespace taas::ui
