// VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE: values that a context keeps from run to run, until reset(). A variable is
// named by (container, shared_name), is the same in all subgraphs, and begins as zeros. Its shape is that of the first
// operator that uses it and cannot change.
#ifndef ONEWEIGHT_OPS_VARIABLE_H
#define ONEWEIGHT_OPS_VARIABLE_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct VariableParams {
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct VarHandle {
  static bool accepts(const NodeTypes& t) { return t.input_count == 0 && t.out(0, TensorType::resource); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::var_handle, .types = "resource", .accepts = &accepts, .prepare = &prepare};
};
struct ReadVariable {
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::resource) && t.output_count == 1 && tensor_type_bits(t.outputs[0]) != 0; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::read_variable, .types = "all of fixed size", .accepts = &accepts, .prepare = &prepare};
};
struct AssignVariable {
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::resource) && t.input_count == 2 && tensor_type_bits(t.inputs[1]) != 0; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::assign_variable, .types = "all of fixed size", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status VarHandle::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(0, 0));
  std::string name = "variable ";
  for (int field : {0, 1}) {
    if (const std::vector<int64_t>* text = p.options().vector(field))
      for (int64_t c : *text) name += static_cast<char>(c);
    name += '/';
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.output(0).shape.elements() == 1 ? p.output(0).shape : Shape()));
  int32_t* handle = p.derived<int32_t>(1);
  if (!handle) return p.no_memory();
  *handle = p.resource_handle(name);
  p.set_constant_output(0, handle);
  return {};
}

inline Status variable_name(const Preparation& p, const std::string** name) {
  const Operand& handle = p.input(0);
  if (!handle.is_constant || handle.shape.elements() != 1)
    return p.error(ErrorCode::unsupported, "its variable %s is not known before the run", p.describe(handle).c_str());
  *name = p.resource_name(Preparation::load<int32_t>(handle.data, 0));
  return *name ? Status() : p.invalid("%s does not name a variable", p.describe(handle).c_str());
}

inline void read_variable_kernel(const KernelArgs& args) {
  const auto& p = args.params<VariableParams>();
  if (p.bytes > 0) std::memcpy(args.out<std::byte>(0), args.run->resource(p.offset), static_cast<size_t>(p.bytes));
}
ONEWEIGHT_INLINE Status ReadVariable::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const std::string* name;
  ONEWEIGHT_RETURN_IF_ERROR(variable_name(p, &name));
  VariableParams* params = p.make_params<VariableParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(p.resource(*name, p.output(0).type, p.output(0).shape, &params->offset));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.output(0).shape));
  params->bytes = p.output(0).shape.bytes(p.output(0).type);
  p.set_kernel(&read_variable_kernel);
  p.set_not_foldable();
  return {};
}

inline void assign_variable_kernel(const KernelArgs& args) {
  const auto& p = args.params<VariableParams>();
  if (p.bytes > 0) std::memcpy(args.run->resource(p.offset), args.in<std::byte>(1), static_cast<size_t>(p.bytes));
}
ONEWEIGHT_INLINE Status AssignVariable::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2, 0));
  const std::string* name;
  ONEWEIGHT_RETURN_IF_ERROR(variable_name(p, &name));
  VariableParams* params = p.make_params<VariableParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(p.resource(*name, p.input(1).type, p.input(1).shape, &params->offset));
  params->bytes = p.input(1).shape.bytes(p.input(1).type);
  p.set_kernel(&assign_variable_kernel);
  p.set_side_effect();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_VARIABLE_H
