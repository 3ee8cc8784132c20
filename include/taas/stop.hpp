#pragma once

namespace taas {

/// True from the moment on when the run is known to end soon and a checkpoint should be written: the batch system has
/// warned the launcher (SLURM's --signal, a preemption), or the run is being stopped. The launcher then makes the file
/// that TAAS_STOP_REQUESTED names; without that variable this is always false. Ranks may learn it in different steps:
/// agree (an all_reduce of the maximum) before a collective depends on it. Costs one look at a file system.
bool should_checkpoint();

/// From now on SIGTERM, SIGUSR1 and SIGUSR2 do not end this process once should_checkpoint() is true, so that a step
/// can be finished and a checkpoint written; SIGTERM ends it as ever when it comes without such a wish, as after
/// another rank's failure.
void catch_stop_signals();

/// The signal that came since catch_stop_signals() and means that this process is to end: SIGTERM, or 0 for none. End
/// with code 128 + signal once the checkpoint is written; the launcher kills what goes on for --shutdown-timeout.
int stop_signal();

}  // namespace taas
