#include "profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "shown_text.h"

namespace program {

using oneweight::Placement;
using oneweight::Plan;
using oneweight::PlanTensor;
using oneweight::Step;

void Profile::observe(void* user, int step) {
  auto& profile = *static_cast<Profile*>(user);
  const auto now = std::chrono::steady_clock::now();
  if (profile.at >= 0) profile.ns[static_cast<size_t>(profile.at)] += std::chrono::duration_cast<std::chrono::nanoseconds>(now - profile.since).count();
  profile.at = static_cast<size_t>(step) < profile.ns.size() ? step : -1;
  profile.since = now;
}

double Profile::total_ms() const {
  double total = 0;
  for (int64_t step : ns) total += static_cast<double>(step) / 1e6;
  return total;
}

StepBytes bytes_of(const Plan& plan, const Step& step) {
  StepBytes bytes;
  const auto tensor = [&](int32_t t) -> const PlanTensor& { return plan.tensors()[static_cast<size_t>(t)]; };
  for (int i = 0; i < step.input_count; ++i) {
    if (step.inputs[i] < 0 || std::find(step.inputs, step.inputs + i, step.inputs[i]) != step.inputs + i) continue;
    const PlanTensor& input = tensor(step.inputs[i]);
    if (input.placement == Placement::constant)
      bytes.constants += input.bytes;
    else
      bytes.read += input.bytes;
  }
  for (int i = 0; i < step.output_count; ++i)
    if (step.outputs[i] >= 0) bytes.written += tensor(step.outputs[i]).bytes;
  bytes.scratch = plan.scratch_bytes(step);
  return bytes;
}

namespace {

// One line of a table: a step, or all steps of an operator.
struct Row {
  double ms = 0;
  int steps = 0;
  StepBytes bytes;                   // scratch: the most
  void add(double more_ms, const StepBytes& more) {
    ms += more_ms;
    ++steps;
    bytes.read += more.read, bytes.constants += more.constants, bytes.written += more.written;
    bytes.scratch = std::max(bytes.scratch, more.scratch);
  }
};

void print_numbers(const Row& row, double share) {
  const auto kib = [](int64_t bytes) { return static_cast<double>(bytes) / 1024; };
  std::printf(" %10.4f %5.1f%% %11.1f %11.1f %11.1f %11.1f %7.2f", row.ms, share, kib(row.bytes.read), kib(row.bytes.constants), kib(row.bytes.written),
              kib(row.bytes.scratch), row.ms > 0 ? static_cast<double>(row.bytes.moved()) / (row.ms * 1e6) : 0.0);
}
constexpr const char* kNumbers = "   ms a run  share    read KiB weights KiB written KiB scratch KiB    GB/s";

}  // namespace

void print_profile(const Plan& plan, const Profile& profile, size_t runs) {
  constexpr size_t kLongest = 20;    // steps listed
  const double total = profile.total_ms() / static_cast<double>(runs);
  const auto ms = [&](size_t s) { return static_cast<double>(profile.ns[s]) / 1e6 / static_cast<double>(runs); };
  const auto share = [&](double part) { return total > 0 ? 100 * part / total : 0.0; };
  std::map<std::string, Row> by_operator;
  std::vector<size_t> order;
  Row all;
  for (size_t s = 0; s < profile.ns.size(); ++s) {
    const StepBytes bytes = bytes_of(plan, plan.steps()[s]);
    by_operator[printable(plan.steps()[s].name)].add(ms(s), bytes);
    all.add(ms(s), bytes);
    order.push_back(s);
  }
  std::vector<std::pair<std::string, Row>> rows(by_operator.begin(), by_operator.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  rows.emplace_back("all", all);
  std::printf("\n%-28s %6s%s\n", "operator", "steps", kNumbers);
  for (const auto& [name, row] : rows) {
    std::printf("%-28s %6d", name.c_str(), row.steps);
    print_numbers(row, share(row.ms));
    std::printf("\n");
  }
  std::printf("\n%6s %-28s%s  output\n", "step", "operator", kNumbers);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return profile.ns[a] > profile.ns[b]; });
  order.resize(std::min(order.size(), kLongest));
  for (size_t s : order) {
    const Step& step = plan.steps()[s];
    Row row;
    row.add(ms(s), bytes_of(plan, step));
    std::printf("%6zu %-28s", s, printable(step.name).c_str());
    print_numbers(row, share(row.ms));
    if (step.output_count > 0) {
      const PlanTensor& output = plan.tensors()[static_cast<size_t>(step.outputs[0])];
      std::printf("  %s %s", tensor_type_name(output.type), output.shape.to_string().c_str());
    }
    std::printf("\n");
  }
  std::printf("read, weights, written: bytes of the tensors a step names, each once; scratch: the most of a step\n");
}

}  // namespace program
