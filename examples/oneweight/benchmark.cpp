// Latency of one context, of several at a time, of runs that begin at fixed times, and of every operator.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "commands.h"
#include "oneweight/context/eigen_executor.h"
#include "profile.h"

namespace program {

namespace {

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

// Runs `runs` times, or for about a second.
oneweight::Status measure(oneweight::ExecutionContext& context, const oneweight::RunOptions& options, int runs, Progress* progress,
                          std::vector<double>* ms) {
  const Clock::time_point begin = Clock::now();
  const auto enough = [&] {
    if (runs > 0) return ms->size() >= static_cast<size_t>(runs);
    return ms->size() >= 10 && Clock::now() - begin > std::chrono::seconds(1);
  };
  while (!enough()) {
    const Clock::time_point start = Clock::now();
    ONEWEIGHT_RETURN_IF_ERROR(context.run(options));
    ms->push_back(milliseconds(Clock::now() - start));
    if (progress && runs > 0) progress->show(static_cast<int64_t>(ms->size()), runs);
  }
  return {};
}

// "10ms" as a time. Errors: invalid_argument.
oneweight::Expected<Clock::duration> read_cadence(const std::string& text) {
  char* end = nullptr;
  const double ms = std::strtod(text.c_str(), &end);
  if (std::string(end) != "ms" || !(ms >= 0.01 && ms <= 60000))
    return oneweight::make_error(oneweight::ErrorCode::invalid_argument, "--cadence %s: expected milliseconds from 0.01 to 60000, such as 10ms", text.c_str());
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
}

// One run after another begins `cadence` later; a run that is due while another lasts begins behind it.
oneweight::Status measure_cadence(const Planned& planned, const oneweight::RunOptions& options, int runs, Clock::duration cadence,
                                  const std::vector<std::string>& inputs, Progress* progress, std::vector<double>* ms) {
  auto context = oneweight::ExecutionContext::create(planned.plan);
  if (!context.ok()) return context.status();
  ONEWEIGHT_RETURN_IF_ERROR(set_inputs(*context, inputs));
  context->prefault();
  ms->reserve(static_cast<size_t>(runs));
  Clock::time_point due = Clock::now();
  for (int i = 0; i < runs; ++i) {
    std::this_thread::sleep_until(due += cadence);
    const Clock::time_point start = Clock::now();
    ONEWEIGHT_RETURN_IF_ERROR(context->run(options));
    ms->push_back(milliseconds(Clock::now() - start));
    progress->show(i + 1, runs);
  }
  return {};
}

int benchmark_cadence(const BenchmarkArguments& arguments, const Planned& planned, const oneweight::RunOptions& options) {
  auto cadence = read_cadence(arguments.cadence);
  if (!cadence.ok()) return report(cadence.status()), static_cast<int>(kWrongUsage);
  std::vector<double> times;
  {
    Progress progress("benchmark");
    const int runs = arguments.runs > 0 ? arguments.runs : 500;
    const oneweight::Status status = measure_cadence(planned, options, runs, *cadence, arguments.inputs, &progress, &times);
    if (!status.ok()) return report(status);
  }
  const double first = times.front();
  std::sort(times.begin(), times.end());
  const double median = quantile(times, 0.5), p99 = quantile(times, 0.99);
  if (arguments.json) {
    const nlohmann::ordered_json result = {{"cadence", arguments.cadence}, {"runs", times.size()}, {"first_ms", first},
                                           {"median_ms", median},          {"p99_ms", p99},        {"max_ms", times.back()}};
    std::printf("%s\n", result.dump().c_str());
    return kSuccess;
  }
  std::printf("%s, a run every %s (%zu runs)\n", arguments.model.model.c_str(), arguments.cadence.c_str(), times.size());
  std::printf("  run 1           %.4f ms (%.2f of the median)\n", first, first / median);
  std::printf("  median          %.4f ms\n  p99             %.4f ms\n  max             %.4f ms\n", median, p99, times.back());
  return kSuccess;
}

}  // namespace

int benchmark(const BenchmarkArguments& arguments) {
  oneweight::PlanOptions plan_options;
  plan_options.workers = arguments.threads;
  const Clock::time_point start = Clock::now();
  auto planned = open_and_plan(arguments.model, plan_options);
  if (!planned.ok()) return report(planned.status());
  const double open_ms = milliseconds(Clock::now() - start);

  std::optional<oneweight::EigenExecutor> pool;
  oneweight::RunOptions options;
  if (arguments.threads > 1) options.executor = &pool.emplace(arguments.threads);
  if (!arguments.cadence.empty()) return benchmark_cadence(arguments, *planned, options);

  std::vector<oneweight::ExecutionContext> contexts;
  double cold_ms = 0;
  for (int i = 0; i < arguments.contexts; ++i) {
    auto context = oneweight::ExecutionContext::create(planned->plan);
    if (!context.ok()) return report(context.status());
    if (oneweight::Status status = set_inputs(*context, arguments.inputs); !status.ok()) return report(status);
    if (oneweight::Status status = context->run(); !status.ok()) return report(status);
    if (i == 0) cold_ms = milliseconds(Clock::now() - start);
    contexts.push_back(std::move(*context));
  }

  Profile profile(planned->plan->steps().size());

  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  if (arguments.contexts == 1) {
    Progress progress("benchmark");
    if (oneweight::Status status = contexts[0].run(options); !status.ok()) return report(status);
    if (arguments.profile) {
      options.observer = &Profile::observe;
      options.observer_user = &profile;
    }
    if (oneweight::Status status = measure(contexts[0], options, arguments.runs, &progress, &times); !status.ok()) return report(status);
  } else {
    std::vector<std::vector<double>> each(contexts.size());
    std::vector<oneweight::Status> statuses(contexts.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < contexts.size(); ++i)
      threads.emplace_back([&, i] { statuses[i] = measure(contexts[i], options, arguments.runs, nullptr, &each[i]); });
    for (std::thread& thread : threads) thread.join();
    for (const oneweight::Status& status : statuses)
      if (!status.ok()) return report(status);
    for (const auto& ms : each) times.insert(times.end(), ms.begin(), ms.end());
  }
  const double wall_ms = milliseconds(Clock::now() - begin);
  std::sort(times.begin(), times.end());
  const double median = quantile(times, 0.5), p95 = quantile(times, 0.95);
  const double per_second = 1000 * static_cast<double>(times.size()) / wall_ms;

  if (arguments.json) {
    nlohmann::ordered_json result = {{"median_ms", median},
                                     {"min_ms", times.front()},
                                     {"p95_ms", p95},
                                     {"open_ms", open_ms},
                                     {"cold_ms", cold_ms},
                                     {"runs", times.size()},
                                     {"forecast_bytes", planned->plan->context_bytes()},
                                     {"target", highway_target(*planned->plan)},
                                     {"threads", arguments.threads},
                                     {"contexts", arguments.contexts},
                                     {"runs_per_second", per_second}};
    if (arguments.profile && arguments.contexts == 1) {
      nlohmann::ordered_json steps = nlohmann::ordered_json::array();
      for (size_t i = 0; i < profile.ns.size(); ++i) {
        const StepBytes bytes = bytes_of(*planned->plan, planned->plan->steps()[i]);
        steps.push_back({{"operator", planned->plan->steps()[i].name},
                         {"ms", static_cast<double>(profile.ns[i]) / 1e6 / static_cast<double>(times.size())},
                         {"read_bytes", bytes.read},
                         {"weight_bytes", bytes.constants},
                         {"written_bytes", bytes.written},
                         {"scratch_bytes", bytes.scratch}});
      }
      result["profile"] = steps;
    }
    std::printf("%s\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kSuccess;
  }
  std::printf("%s\n", arguments.model.model.c_str());
  std::printf("  target          %s, %d thread%s, %d context%s\n", highway_target(*planned->plan).c_str(), arguments.threads,
              arguments.threads == 1 ? "" : "s", arguments.contexts, arguments.contexts == 1 ? "" : "s");
  std::printf("  median          %.4f ms (min %.4f, p95 %.4f; %zu runs, %.1f a second)\n", median, times.front(), p95, times.size(), per_second);
  std::printf("  open and plan   %.3f ms; to the first answer %.3f ms\n", open_ms, cold_ms);
  std::printf("  context         %s\n", megabytes(static_cast<double>(planned->plan->context_bytes())).c_str());
  if (arguments.profile && arguments.contexts == 1) print_profile(*planned->plan, profile, times.size());
  return kSuccess;
}

}  // namespace program
