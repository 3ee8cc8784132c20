#include "training/hooks/staged_hook.hpp"

#include <ATen/ATen.h>

#include "training/hooks/futures.hpp"

namespace taas {

GradientFuture StagedHook::run(GradBucket& bucket) {
  if (bucket.index() == 0) tasks_.clear();  // a backward that failed may have left some
  Task task{pending(bucket.buffer()), stages(bucket)};
  auto result = task.result;
  advance(task);
  tasks_.push_back(std::move(task));
  advance_before(tasks_.size() - 1);
  while (bucket.is_last() && !tasks_.empty()) advance_before(tasks_.size());
  return result;
}

void StagedHook::advance(Task& task) {
  auto& stage = task.stages[task.next++];
  const auto result = stage();
  stage = nullptr;  // lets go of its tensors
  if (task.next == task.stages.size()) task.result->markCompleted(result);
}

void StagedHook::advance_before(std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) advance(tasks_[i]);
  std::erase_if(tasks_, [](const Task& task) { return task.next == task.stages.size(); });
}

}  // namespace taas
