#pragma once

namespace taas::sim_data {

/// One of four workers is ten times slower: at least 90 % of the sum of their speeds. 1 % of the batches take fifty
/// times as long: no loop waits longer than for that one. One
/// worker is frozen: long before it is taken for lost, its batches are made by others. Prints what it finds; false when
/// it does not hold.
bool measure_stragglers();

}  // namespace taas::sim_data
