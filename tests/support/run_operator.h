// Runs a small model on every processor target, between guard pages and band by band.
#ifndef ONEWEIGHT_TESTS_SUPPORT_RUN_OPERATOR_H
#define ONEWEIGHT_TESTS_SUPPORT_RUN_OPERATOR_H

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "oneweight/oneweight.h"
#include "tests/support/guarded_run.h"
#include "tests/support/model_builder.h"

namespace oneweight::testing {

// What one run gave: an error, or the outputs.
struct RunResult {
  std::string target;
  Status status;
  std::vector<Shape> shapes;
  std::vector<std::vector<std::byte>> outputs;

  template <class T>
  std::vector<T> values(int output = 0) const {
    std::vector<T> result(outputs[static_cast<size_t>(output)].size() / sizeof(T));
    if (!result.empty())
      std::memcpy(result.data(), outputs[static_cast<size_t>(output)].data(), result.size() * sizeof(T));
    return result;
  }
};

inline RunResult run_on_target(const ModelBuilder& m, const std::vector<std::vector<uint8_t>>& inputs, int64_t target) {
  RunResult result;
  result.target = target_name(target);
  auto owner = std::make_shared<FileBytes>(m.build());
  auto model = ModelView::from_bytes(*owner, owner);
  if (result.status = model.status(); !result.status.ok()) return result;
  PlanOptions options;
  options.target_mask = target;
  auto plan = make_plan<opset::All>(*model, options);
  if (result.status = plan.status(); !result.status.ok()) return result;
  auto context = ExecutionContext::create(*plan);
  if (result.status = context.status(); !result.status.ok()) return result;
  REQUIRE(inputs.size() == (*plan)->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto memory = context->input_bytes(static_cast<int>(i));
    REQUIRE(memory.size() == inputs[i].size());
    if (!inputs[i].empty()) std::memcpy(memory.data(), inputs[i].data(), inputs[i].size());
  }
  if (result.status = context->run(); !result.status.ok()) return result;
  const int count = static_cast<int>((*plan)->outputs().size());
  for (int i = 0; i < count; ++i) {
    const auto bytes = context->output_bytes(i);
    result.outputs.emplace_back(bytes.begin(), bytes.end());
    result.shapes.push_back(context->output_tensor(i).shape);
  }
  // The same bits between guard pages, whole and in bands of rows.
  for (const int64_t band : {0, 1, 3}) {
    GuardedRun guarded(**plan);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].empty()) std::memcpy(guarded.address((*plan)->inputs()[i]), inputs[i].data(), inputs[i].size());
    REQUIRE(guarded.run(band));
    for (int i = 0; i < count; ++i) {
      const auto& whole = result.outputs[static_cast<size_t>(i)];
      INFO("target " << result.target << ", bands of " << band << " rows, output " << i);
      REQUIRE((whole.empty() || std::memcmp(guarded.address((*plan)->outputs()[static_cast<size_t>(i)]), whole.data(),
                                            whole.size()) == 0));
    }
  }
  return result;
}

inline std::vector<RunResult> run_on_targets(const ModelBuilder& m,
                                             const std::vector<std::vector<uint8_t>>& inputs = {}) {
  std::vector<RunResult> results;
  for (int64_t left = available_targets(); left != 0; left &= left - 1)
    results.push_back(run_on_target(m, inputs, left & -left));
  return results;
}

// Every target gives these values within tolerance (of floats also relative to the wanted value); NaN where NaN is
// wanted.
template <class T>
void check_values(const std::vector<RunResult>& results, const Shape& shape, const std::vector<T>& want,
                  double tolerance = 0, int output = 0) {
  for (const RunResult& r : results) {
    INFO("target " << r.target << ", output " << output << ": " << r.status.message());
    REQUIRE(r.status.ok());
    CHECK(r.shapes[static_cast<size_t>(output)].to_string() == shape.to_string());
    const std::vector<T> got = r.values<T>(output);
    REQUIRE(got.size() == want.size());
    size_t wrong = 0, first = 0;
    for (size_t i = want.size(); i-- > 0;) {
      const double a = static_cast<double>(got[i]), b = static_cast<double>(want[i]);
      const bool good = std::isnan(b) ? std::isnan(a)
                        : std::isinf(b)
                            ? a == b
                            : std::fabs(a - b) <= tolerance * (std::is_floating_point_v<T> ? 1 + std::fabs(b) : 1);
      if (!good) ++wrong, first = i;
    }
    if (wrong > 0)
      FAIL(wrong << " of " << want.size() << " differ, first [" << first << "]: " << +got[first] << " instead of "
                 << +want[first]);
  }
}

// Every target refuses with this code and a sentence that holds `words`.
inline void check_refused(const std::vector<RunResult>& results, ErrorCode code, const std::string& words) {
  for (const RunResult& r : results) {
    INFO("target " << r.target << ": " << r.status.message());
    CHECK(r.status.code() == code);
    CHECK(r.status.message().find(words) != std::string::npos);
  }
}

// Reproducible values.
class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  int64_t between(int64_t low, int64_t high) { return low + next() % (high - low + 1); }
  template <class T>
  std::vector<T> values(int64_t count) {
    std::vector<T> result;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        result.push_back(static_cast<T>(between(-1000, 1000)) / 250);
      else if constexpr (sizeof(T) <= 2)
        result.push_back(static_cast<T>(between(std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
      else
        result.push_back(static_cast<T>(between(-100000, 100000)));
    }
    return result;
  }

 private:
  uint32_t state_;
};

inline std::vector<int32_t> dims(const Shape& shape) {
  std::vector<int32_t> result;
  for (int64_t extent : shape) result.push_back(static_cast<int32_t>(extent));
  return result;
}

// Index of every axis of element i.
inline std::vector<int64_t> unravel(const Shape& shape, int64_t i) {
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
  for (int k = shape.rank() - 1; k >= 0; --k) at[static_cast<size_t>(k)] = i % shape[k], i /= shape[k];
  return at;
}
inline int64_t ravel(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t i = 0;
  for (int k = 0; k < shape.rank(); ++k) i = i * shape[k] + at[static_cast<size_t>(k)];
  return i;
}

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_RUN_OPERATOR_H
