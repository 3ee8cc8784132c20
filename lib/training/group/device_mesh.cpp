#include "taas/device_mesh.hpp"

#include <cstdint>
#include <set>
#include <utility>

#include "taas/error.hpp"

namespace taas {
namespace {

void check_dimensions(const ProcessGroup& group, const std::vector<MeshDimension>& dimensions) {
  std::int64_t ranks = 1;
  std::set<std::string> names;
  for (const auto& [name, size] : dimensions) {
    if (name.empty() || !names.insert(name).second) {
      throw InvalidArgument("DeviceMesh: the dimensions need names that are distinct, and one is '" + name + "'");
    }
    if (size < 1) {
      throw InvalidArgument("DeviceMesh: the size of '" + name + "' must be 1 or more, not " + std::to_string(size));
    }
    ranks *= size;
  }
  if (dimensions.empty() || ranks != group.world_size()) {
    throw InvalidArgument("DeviceMesh: the sizes of the dimensions multiply to " + std::to_string(ranks) +
                          ", but the group has " + std::to_string(group.world_size()) + " ranks");
  }
}

}  // namespace

DeviceMesh::DeviceMesh(const ProcessGroup& group, std::vector<MeshDimension> dimensions)
    : group_(group), dimensions_(std::move(dimensions)) {
  check_dimensions(group, dimensions_);
  int stride = group.world_size();
  for (const auto& dimension : dimensions_) {
    stride /= dimension.size;
    const int coordinate = group.rank() / stride % dimension.size;
    // Ranks that differ along this dimension alone have this in common.
    groups_.push_back(*split(group, group.rank() - coordinate * stride, coordinate));
  }
}

const ProcessGroup& DeviceMesh::operator[](std::string_view dimension) const { return groups_[place_of(dimension)]; }

int DeviceMesh::coordinate(std::string_view dimension) const { return groups_[place_of(dimension)].rank(); }

int DeviceMesh::size(std::string_view dimension) const { return dimensions_[place_of(dimension)].size; }

std::size_t DeviceMesh::place_of(std::string_view dimension) const {
  std::string known;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i].name == dimension) return i;
    known += (i == 0 ? "" : ", ") + dimensions_[i].name;
  }
  throw InvalidArgument("DeviceMesh has no dimension '" + std::string(dimension) + "', but " + known);
}

}  // namespace taas
