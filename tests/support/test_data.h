// Models kept in the repository, for tests that need a real one.
#ifndef ONEWEIGHT_TESTS_SUPPORT_TEST_DATA_H
#define ONEWEIGHT_TESTS_SUPPORT_TEST_DATA_H

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "oneweight/oneweight.h"

// ONEWEIGHT_TEST_DATA: the folder tests/data, set by the build.
inline std::vector<std::string> test_models() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ONEWEIGHT_TEST_DATA) + "/models"))
    if (std::filesystem::exists(entry.path() / "model.tflite")) paths.push_back((entry.path() / "model.tflite").string());
  REQUIRE_FALSE(paths.empty());
  return paths;
}

inline std::shared_ptr<const oneweight::Plan> plan_of(const std::string& path, const oneweight::PlanOptions& options = {}) {
  auto model = oneweight::ModelView::open(path.c_str());
  INFO(path << ": " << model.status().message());
  REQUIRE(model.ok());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model, options);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

inline oneweight::ExecutionContext context_of(const std::shared_ptr<const oneweight::Plan>& plan) {
  auto context = oneweight::ExecutionContext::create(plan);
  INFO(context.status().message());
  REQUIRE(context.ok());
  return std::move(*context);
}

// Reproducible inputs: floats in [-1, 1], small non-negative integers elsewhere.
inline void fill_inputs(oneweight::ExecutionContext& context, unsigned seed = 1) {
  unsigned state = seed * 2654435761u + 12345u;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int i = 0; i < static_cast<int>(context.plan()->inputs().size()); ++i) {
    if (auto floats = context.input<float>(i); floats.ok()) {
      for (float& f : *floats) f = static_cast<float>(next() % 2001) / 1000.0f - 1.0f;
    } else {
      const bool bytes = oneweight::tensor_type_bits(context.input_tensor(i).type) == 8;
      const size_t size = static_cast<size_t>(oneweight::tensor_type_bits(context.input_tensor(i).type)) / 8;
      auto memory = context.input_bytes(i);
      for (size_t k = 0; k < memory.size(); ++k)
        memory[k] = static_cast<std::byte>(bytes ? next() & 0xff : k % size == 0 ? next() % 4 : 0);
    }
  }
}

inline std::vector<std::vector<std::byte>> outputs_of(const oneweight::ExecutionContext& context) {
  std::vector<std::vector<std::byte>> outputs;
  for (int i = 0; i < static_cast<int>(context.plan()->outputs().size()); ++i) {
    const auto bytes = context.output_bytes(i);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

#endif  // ONEWEIGHT_TESTS_SUPPORT_TEST_DATA_H
