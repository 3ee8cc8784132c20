#include <ATen/autocast_mode.h>

#include <string>

#include "taas/amp.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

c10::ScalarType checked_dtype(c10::DeviceType device_type, const AutocastOptions& options) {
  const auto dtype = options.dtype.value_or(at::autocast::get_autocast_dtype(device_type));
  if (!options.enabled || dtype == at::kHalf || dtype == at::kBFloat16) return dtype;
  throw InvalidArgument("Autocast computes in Half or BFloat16, not in " + std::string(c10::toString(dtype)));
}

}  // namespace

Autocast::Autocast(c10::DeviceType device_type, const AutocastOptions& options)
    : device_type_(device_type),
      enabled_before_(at::autocast::is_autocast_enabled(device_type)),
      dtype_before_(at::autocast::get_autocast_dtype(device_type)),
      cache_before_(at::autocast::is_autocast_cache_enabled()) {
  const auto dtype = checked_dtype(device_type, options);
  at::autocast::set_autocast_enabled(device_type, options.enabled);
  at::autocast::set_autocast_dtype(device_type, dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(options.cache_enabled);
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_type_, enabled_before_);
  at::autocast::set_autocast_dtype(device_type_, dtype_before_);
  at::autocast::set_autocast_cache_enabled(cache_before_);
}

}  // namespace taas
