// A user's own operator as two callables, registered by name:
//
//   static constexpr auto kScale = oneweight::custom_operator("Scale",
//       [](oneweight::Preparation& p) { return p.set_output(0, p.input(0).shape); },
//       [](const oneweight::CustomCall& call) {
//         const auto x = call.input<float>(0);
//         for (size_t i = 0; i < x.size(); ++i) call.output<float>(0)[i] = 2 * x[i];
//       });
//   options.custom_operators.push_back(&kScale);
//
// An operator that is to be vectorised, split into rows or folded is written as those of ops/ are (CONTRIBUTING.md).
#ifndef ONEWEIGHT_PLAN_CUSTOM_OPERATOR_H
#define ONEWEIGHT_PLAN_CUSTOM_OPERATOR_H

#include <span>
#include <type_traits>

#include "oneweight/plan/op_row.h"

namespace oneweight {
inline namespace v1 {

// What a CustomCall knows besides addresses.
struct CustomParams {
  static constexpr int kMaxOperands = 16;
  int inputs = 0, outputs = 0;
  TensorType types[2 * kMaxOperands] = {};
  Shape shapes[2 * kMaxOperands];
};

// One execution of a custom operator. Must not throw, allocate or write elsewhere.
class CustomCall {
 public:
  explicit CustomCall(const KernelArgs& args) : args_(args), params_(args.params<CustomParams>()) {}
  int input_count() const { return params_.inputs; }
  int output_count() const { return params_.outputs; }
  const Shape& input_shape(int i) const { return params_.shapes[i]; }
  const Shape& output_shape(int i) const { return params_.shapes[CustomParams::kMaxOperands + i]; }
  // Elements of input or output number i; none when it is left out, does not exist, or has another type.
  template <class T> std::span<const T> input(int i) const {
    if (i < 0 || i >= params_.inputs || params_.types[i] != tensor_type_of<T> || !args_.in<T>(i)) return {};
    return {args_.in<T>(i), static_cast<size_t>(input_shape(i).elements())};
  }
  template <class T> std::span<T> output(int i) const {
    if (i < 0 || i >= params_.outputs || params_.types[CustomParams::kMaxOperands + i] != tensor_type_of<T>) return {};
    return {args_.out<T>(i), static_cast<size_t>(output_shape(i).elements())};
  }
  // Ends the run with an error; operator and step are named by the context.
  void fail(const char* reason) const { args_.run->fail(ErrorCode::invalid_data, "%s", reason); }

 private:
  const KernelArgs& args_;
  const CustomParams& params_;
};

namespace detail {
template <class Run>
void custom_kernel(const KernelArgs& args) {
  Run{}(CustomCall(args));
}
template <class Prepare, class Run>
Status prepare_custom(Preparation& p) {
  if (p.input_count() > CustomParams::kMaxOperands || p.output_count() > CustomParams::kMaxOperands)
    return p.error(ErrorCode::unsupported, "has %d inputs and %d outputs; a custom operator may have %d", p.input_count(), p.output_count(),
                   CustomParams::kMaxOperands);
  CustomParams* params = p.make_params<CustomParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(Prepare{}(p));
  params->inputs = p.input_count(), params->outputs = p.output_count();
  for (int i = 0; i < p.input_count(); ++i)
    if (p.has_input(i)) params->types[i] = p.input(i).type, params->shapes[i] = p.input(i).shape;
  for (int i = 0; i < p.output_count(); ++i)
    params->types[CustomParams::kMaxOperands + i] = p.output(i).type, params->shapes[CustomParams::kMaxOperands + i] = p.output(i).shape;
  p.set_kernel(&custom_kernel<Run>);
  return {};
}
}  // namespace detail

// `name`: the custom code in the file; must live as long as the row. prepare(Preparation&) checks the node (its options:
// p.op().custom_options), states every output's shape, and returns a Status; run(const CustomCall&) computes the outputs.
// Both without captures: what they need stands in the node's options and inputs.
template <class Prepare, class Run>
constexpr OpRow custom_operator(const char* name, Prepare, Run) {
  static_assert(std::is_empty_v<Prepare> && std::is_empty_v<Run>, "callables of custom operators have no captures");
  return {.code = BuiltinOperator::custom,
          .custom_code = name,
          .types = "the user's own",
          .accepts = [](const NodeTypes&) { return true; },
          .prepare = &detail::prepare_custom<Prepare, Run>};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_CUSTOM_OPERATOR_H
