#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "store/request.hpp"

namespace taas::store {

// A length beyond these is a protocol error. Below them memory is taken only as the bytes really arrive.
inline constexpr std::uint64_t kMaxKeyBytes = 8 * 1024;  ///< as torch's own server
inline constexpr std::uint64_t kMaxKeys = 128 * 1024;    ///< in one request or answer; as torch's own server
inline constexpr std::uint64_t kMaxRequestBytes = 256 * 1024 * 1024;  ///< all keys and values of one request together

struct Grammar;

/// Turns one client's bytes into requests. It keeps what it has of an unfinished request and nothing else.
/// The first request must be VALIDATE with the protocol's magic number; it is checked here and not handed out.
class Parser {
 public:
  /// Takes bytes off the front until a request is whole; nullopt when all are used and more are needed.
  /// After an error the client speaks something else: close its connection.
  Result<std::optional<Request>> next(std::string_view& bytes);

  /// The first request has come.
  [[nodiscard]] bool has_greeted() const { return validated_; }
  /// Bytes taken for the request that is not whole yet.
  [[nodiscard]] std::size_t held() const { return held_; }

 private:
  enum class Part { kType, kCount, kField };

  std::size_t number_width() const;
  bool take_number(std::string_view& bytes);
  bool take_text(std::string_view& bytes);
  Result<> on_number(std::uint64_t number);
  Result<> begin_request(std::uint64_t type);
  Result<> begin_text(char kind, std::uint64_t length);
  void end_field();
  bool is_whole() const { return part_ == Part::kField && groups_left_ == 0; }
  Result<std::optional<Request>> finish_request();

  Part part_ = Part::kType;
  const Grammar* grammar_ = nullptr;
  std::uint64_t groups_left_ = 0;  ///< how often the grammar's fields are still to come
  std::size_t field_ = 0;

  std::array<char, 8> digits_{};  ///< the first bytes of a number
  std::size_t digits_read_ = 0;
  std::uint64_t text_left_ = 0;

  std::vector<std::string> texts_;
  std::size_t held_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t request_bytes_ = 0;
  bool validated_ = false;
};

}  // namespace taas::store
