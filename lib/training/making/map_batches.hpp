#pragma once

#include <memory>
#include <string>

#include "training/making/batch_maker.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// Batches of a dataset with indices. Any task may be made at any time, and again: it gives the same.
class MapBatches : public BatchMaker {
 public:
  /// `loader` is the loader's name.
  MapBatches(std::string loader, std::shared_ptr<Dataset> dataset, Collate collate)
      : loader_(std::move(loader)), dataset_(std::move(dataset)), collate_(std::move(collate)) {}

  [[nodiscard]] std::string description() const override;
  /// `task` is a DataTask.
  FreshBatch make(std::string_view task) override;

 private:
  [[nodiscard]] Tensors made(const DataTask& task, std::string& where) const;

  std::string loader_;
  std::shared_ptr<Dataset> dataset_;
  Collate collate_;
};

}  // namespace taas
