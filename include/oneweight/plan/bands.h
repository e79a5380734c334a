// Divides the rows, or the output channels, of large steps into bands that several threads may compute at the same time.
#ifndef ONEWEIGHT_PLAN_BANDS_H
#define ONEWEIGHT_PLAN_BANDS_H

#include <algorithm>

#include "oneweight/plan/preparation.h"

namespace oneweight {
inline namespace v1 {

inline constexpr int kMaxWorkers = 64;

// The work of a step that has not said it.
inline double byte_work(std::span<const PlanTensor> tensors, const Step& step) {
  double bytes = 0;
  const auto add = [&](int32_t t) {
    if (t >= 0 && tensors[static_cast<size_t>(t)].placement != Placement::constant) bytes += static_cast<double>(tensors[static_cast<size_t>(t)].bytes);
  };
  std::for_each_n(step.inputs, step.input_count, add);
  std::for_each_n(step.outputs, step.output_count, add);
  return kByteWork * bytes;
}

// A band is worth `least`. False, and no step is divided, when that would not make a run shorter.
inline bool divide_into_bands(std::span<const PlanTensor> tensors, std::span<Step> steps, std::span<const StepWork> works,
                              int64_t workers, int64_t least) {
  constexpr int64_t kShorter = 2;    // bands for each thread where they can be short: a thread that is late then costs less
  constexpr int kCall = 16;          // bands that are worth calling other threads to a run
  constexpr size_t kMostSteps = size_t{1} << 20;
  if (workers < 2 || steps.size() > kMostSteps) return false;
  const double one = static_cast<double>(std::max<int64_t>(least, 1));
  const auto whole = [](double n) { return static_cast<int64_t>(std::min(n, 1e6)); };
  double divided = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    // A step in a chain is divided within each tile.
    const int64_t rows = step.tile_rows > 0 ? step.tile_rows : step.rows;
    const double all = (works[s].all < 0 ? byte_work(tensors, step) : works[s].all) * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(step.rows, 1));
    // What one of `workers` does when they share `units`.
    const auto share = [&](int64_t units, double each) {
      return all * static_cast<double>((units + workers - 1) / workers) / static_cast<double>(std::max<int64_t>(units, 1)) + each;
    };
    step.divides_blocks = share(step.blocks, works[s].each_block_range) < share(rows, works[s].each_range);
    const int64_t units = step.divides_blocks ? step.blocks : rows;
    const double each = step.divides_blocks ? works[s].each_block_range : works[s].each_range;
    const int64_t bands = std::min({workers, units, whole(all / one)});
    if (bands < 2 || each > all / 4) continue;
    const int64_t shorter = std::min({kShorter * workers, units, whole(all / (4 * one)), whole(all / (32 * std::max(each, 1.0)))});
    step.bands = std::max(bands, shorter);
    divided += all * static_cast<double>(step.rows) / static_cast<double>(std::max<int64_t>(rows, 1));
  }
  if (divided > kCall * one) return true;
  for (Step& step : steps) step.bands = 1;
  return false;
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_BANDS_H
