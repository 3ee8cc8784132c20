#pragma once

#include "taas/adadelta.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/data.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/graphed_step.hpp"
#include "taas/optimizers.hpp"
#include "taas/process_group.hpp"
#include "taas/sampler.hpp"
#include "taas/stop.hpp"
#include "taas/version.hpp"
