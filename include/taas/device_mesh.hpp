#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "taas/process_group.hpp"

namespace taas {

/// A dimension of a mesh.
struct MeshDimension {
  std::string name;
  int size = 1;
};

/// The ranks of a group as a grid, the last dimension being the one whose ranks are neighbours (row-major, as
/// torch.distributed.DeviceMesh): for hybrid sharding (HSDP), say, shards within a machine and replicas across
/// machines:
///
///     taas::DeviceMesh mesh(group, {{"replicate", 2}, {"shard", 4}});
///     taas::DistributedDataParallel model(network, mesh["replicate"]);
///
/// All ranks make it, with the same dimensions.
class DeviceMesh {
 public:
  /// Throws InvalidArgument when the sizes do not multiply to the group's world size, a size is below 1, or names are
  /// empty or not distinct; CommunicationError as new_group().
  DeviceMesh(const ProcessGroup& group, std::vector<MeshDimension> dimensions);

  /// The group of the ranks that differ from this one only along this dimension. Throws InvalidArgument for a name that
  /// the mesh does not have.
  const ProcessGroup& operator[](std::string_view dimension) const;
  /// This rank's place along it: its rank in that group.
  int coordinate(std::string_view dimension) const;
  int size(std::string_view dimension) const;
  const std::vector<MeshDimension>& dimensions() const { return dimensions_; }
  /// Of all its ranks.
  const ProcessGroup& group() const { return group_; }

 private:
  std::size_t place_of(std::string_view dimension) const;

  ProcessGroup group_;
  std::vector<MeshDimension> dimensions_;
  std::vector<ProcessGroup> groups_;  ///< along each dimension
};

}  // namespace taas
