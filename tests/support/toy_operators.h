// Operators for tests of plan and context that must not depend on real ones.
#ifndef ONEWEIGHT_TESTS_SUPPORT_TOY_OPERATORS_H
#define ONEWEIGHT_TESTS_SUPPORT_TOY_OPERATORS_H

#include <catch2/catch_test_macros.hpp>

#include "oneweight/context/execution_context.h"
#include "oneweight/plan/builder.h"
#include "tests/support/opened_model.h"

namespace oneweight::testing {

inline bool accepts_floats(const NodeTypes& t) {
  for (int i = 0; i < t.input_count; ++i)
    if (t.has_input[i] && t.inputs[i] != TensorType::float32) return false;
  return t.out(0, TensorType::float32);
}

struct ToyParams {
  int64_t count = 0;
  FusedActivation activation;
};

inline Status prepare_toy(Preparation& p, KernelFn kernel, int inputs, bool in_place) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(inputs, inputs));
  ToyParams* params = p.make_params<ToyParams>();
  if (!params) return p.no_memory();
  params->count = p.input(0).shape.elements();
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  p.set_kernel(kernel);
  if (in_place) p.allow_in_place(0);
  p.offer_activation(&params->activation);
  return {};
}

// y = -x, in place, with a fused clamp.
inline void neg_kernel(const KernelArgs& args) {
  const auto& p = args.params<ToyParams>();
  for (int64_t i = 0; i < p.count; ++i) {
    float y = -args.in<float>(0)[i];
    if (y < p.activation.low) y = p.activation.low;
    if (y > p.activation.high) y = p.activation.high;
    args.out<float>(0)[i] = y;
  }
}
inline Status prepare_neg(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &neg_kernel, 1, true));
  return {};
}

// z = x + y.
inline void add_kernel(const KernelArgs& args) {
  const auto& p = args.params<ToyParams>();
  for (int64_t i = 0; i < p.count; ++i) args.out<float>(0)[i] = args.in<float>(0)[i] + args.in<float>(1)[i];
}
inline Status prepare_add(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &add_kernel, 2, true));
  p.offer_activation(nullptr);
  return {};
}

// Clamps at zero; fuses into neg.
inline void relu_kernel(const KernelArgs& args) {
  for (int64_t i = 0; i < args.params<ToyParams>().count; ++i) {
    const float x = args.in<float>(0)[i];
    args.out<float>(0)[i] = x < 0 ? 0 : x;
  }
}
inline Status prepare_relu(Preparation& p) {
  FusedActivation wanted;
  wanted.low = 0;
  if (p.fuse_activation(wanted)) return {};
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &relu_kernel, 1, true));
  p.offer_activation(nullptr);
  return {};
}

// The same bytes: vanishes where it can.
inline void reshape_kernel(const KernelArgs& args) {
  std::memcpy(args.out<float>(0), args.in<float>(0), static_cast<size_t>(args.params<ToyParams>().count) * sizeof(float));
}
inline Status prepare_reshape(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &reshape_kernel, 1, false));
  p.offer_activation(nullptr);
  p.allow_alias(0);
  return {};
}

// Fails while running when an element is above 100; needs 1000 bytes of scratch.
inline void exp_kernel(const KernelArgs& args) {
  std::memset(args.scratch, 0x5a, 1000);
  for (int64_t i = 0; i < args.params<ToyParams>().count; ++i) {
    if (args.in<float>(0)[i] > 100) return args.run->fail(ErrorCode::invalid_data, "element %d is too large", static_cast<int>(i));
    args.out<float>(0)[i] = args.in<float>(0)[i];
  }
}
inline Status prepare_exp(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &exp_kernel, 1, false));
  p.set_scratch(1000);
  p.offer_activation(nullptr);
  return {};
}

// Widens half constants.
inline void dequantize_kernel(const KernelArgs& args) {
  for (int64_t i = 0; i < args.params<ToyParams>().count; ++i)
    args.out<float>(0)[i] = half_to_float(Preparation::load<half>(args.in<std::byte>(0), i));
}
inline Status prepare_dequantize(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &dequantize_kernel, 1, false));
  p.offer_activation(nullptr);
  return {};
}
// x + half constant, read where it lies.
inline void add_half_kernel(const KernelArgs& args) {
  for (int64_t i = 0; i < args.params<ToyParams>().count; ++i)
    args.out<float>(0)[i] = args.in<float>(0)[i] + half_to_float(Preparation::load<half>(args.in<std::byte>(1), i));
}
inline Status prepare_add_half(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_toy(p, &add_half_kernel, 2, true));
  p.offer_activation(nullptr);
  return {};
}

inline constexpr OpRow kToyRows[] = {
    {.code = BuiltinOperator::add, .accepts = [](const NodeTypes& t) { return t.in(0, TensorType::float32) && t.in(1, TensorType::float16); },
     .prepare = &prepare_add_half, .stored_inputs = 2},
    {.code = BuiltinOperator::add, .accepts = &accepts_floats, .prepare = &prepare_add},
    {.code = BuiltinOperator::neg, .accepts = &accepts_floats, .prepare = &prepare_neg},
    {.code = BuiltinOperator::relu, .accepts = &accepts_floats, .prepare = &prepare_relu},
    {.code = BuiltinOperator::reshape, .accepts = &accepts_floats, .prepare = &prepare_reshape},
    {.code = BuiltinOperator::exp, .accepts = &accepts_floats, .prepare = &prepare_exp},
    {.code = BuiltinOperator::dequantize, .accepts = [](const NodeTypes& t) { return t.in(0, TensorType::float16); },
     .prepare = &prepare_dequantize, .widens = true},
};

inline Expected<std::shared_ptr<const Plan>> plan_toy(const FileBytes& file, const PlanOptions& options = {}) {
  return PlanBuilder::build(opened(file), options, kToyRows, 1);
}

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_TOY_OPERATORS_H
