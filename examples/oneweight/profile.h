// Time of every step of a plan, summed over runs.
#ifndef ONEWEIGHT_EXAMPLES_PROFILE_H
#define ONEWEIGHT_EXAMPLES_PROFILE_H

#include <chrono>
#include <cstdint>
#include <vector>

#include "oneweight/plan/plan.h"

namespace program {

// For RunOptions::observer, `user` being the profile. A step may be announced several times in a run: what lies between an
// announcement and the next one belongs to it. Eight bytes a step; nothing is allocated while models run.
struct Profile {
  explicit Profile(size_t steps) : ns(steps) {}
  static void observe(void* user, int step);
  // Milliseconds of the steps in all runs.
  double total_ms() const;

  std::vector<int64_t> ns;           // by step
  int at = -1;                       // the step that runs; -1 between runs
  std::chrono::steady_clock::time_point since;
};

// What a step names, in bytes: constants are read at most once if it is not divided.
struct StepBytes {
  int64_t read = 0;                  // inputs that are computed or given
  int64_t constants = 0;             // weights and other constants
  int64_t written = 0;
  int64_t scratch = 0;
  int64_t moved() const { return read + constants + written; }
};
StepBytes bytes_of(const oneweight::Plan& plan, const oneweight::Step& step);

// Two tables: by operator, and the steps that take longest.
void print_profile(const oneweight::Plan& plan, const Profile& profile, size_t runs);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_PROFILE_H
