#include <torch/csrc/distributed/c10d/comm.hpp>

#include "taas/comm_hooks.hpp"

namespace taas {

std::size_t GradBucket::index() const { return bucket_->getIndex(); }
bool GradBucket::is_last() const { return bucket_->isLast(); }
at::Tensor GradBucket::buffer() const { return bucket_->getBuffer(); }
void GradBucket::set_buffer(at::Tensor buffer) { bucket_->setBuffer(buffer); }
std::vector<at::Tensor> GradBucket::gradients() const { return bucket_->getGradients(); }
std::vector<at::Tensor> GradBucket::parameters() const { return bucket_->getParameters(); }

}  // namespace taas
