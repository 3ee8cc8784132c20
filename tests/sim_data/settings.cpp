#include "settings.hpp"

namespace taas::sim_data {
namespace {

using namespace std::chrono_literals;

LoaderSettings draw_loader(Random& random) {
  LoaderSettings loader;
  loader.epochs = random.between(1, 3);
  loader.batches = random.between(1, 60);
  loader.taken = random.chance(25) ? random.between(1, loader.batches) : loader.batches;
  loader.ahead = random.between(1, 30);
  loader.shards = random.chance(25) ? random.between(1, 6) : 0;
  loader.prepared = loader.shards == 0 && random.chance(20);
  loader.cost = 1ms + random.up_to(100ms);
  loader.slow_percent = random.chance(30) ? random.between(1, 10) : 0;
  loader.slow_factor = 50;
  loader.step = random.chance(50) ? Duration(0) : random.up_to(50ms);
  loader.begins = random.chance(20) ? random.up_to(20s) : Duration(0);
  return loader;
}

}  // namespace

Settings draw_settings(Random& random) {
  Settings settings;
  settings.policy.depth = random.between(1, 3);
  settings.policy.most = random.between(1, 8);
  settings.policy.first = random.between(0, 3);
  settings.credits = random.between(1, 20);
  int workers = random.between(1, 6);
  for (int index = 0; index < workers; ++index) {
    settings.slowness.push_back(random.chance(15) ? 10.0 : 1.0 + random.between(0, 10) / 10.0);
  }
  int loaders = random.chance(50) ? 1 : random.between(2, 3);
  for (int index = 0; index < loaders; ++index) settings.loaders.push_back(draw_loader(random));
  settings.delay = random.up_to(2ms);
  settings.abandons = random.chance(50);
  settings.returns = random.chance(20) ? random.between(1, 40) : 0;
  settings.faults = random.chance(80) ? random.between(1, 12) : 0;
  settings.credits_change = random.chance(20);
  settings.checkpoint_every = random.between(1, 10);
  return settings;
}

}  // namespace taas::sim_data
