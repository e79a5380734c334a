// CONCATENATION: inputs one behind the other along an axis. uint8 inputs with another scale or zero point than the
// output are requantised as TFLite does (in float, halves away from zero); other quantised types must share them. Rows:
// indices over the first two axes, as far as they lie before the joined one.
// Of inputs without a shape before the run it takes one form, what a list of tensors in a loop becomes: the rows of x before k,
// some rows, the rows of x behind those, for a k that is computed. That writes rows into x, in place where it can.
#ifndef ONEWEIGHT_OPS_CONCATENATION_H
#define ONEWEIGHT_OPS_CONCATENATION_H

#include <cmath>

#include "oneweight/ops/rounded.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ConcatenationPart {
  int32_t input = 0;
  const uint8_t* table = nullptr;  // output value of each stored value where the scales differ
  int64_t bytes = 0;               // of each run
};
struct ConcatenationParams {
  const ConcatenationPart* parts = nullptr;
  int32_t count = 0;
  int64_t runs_per_row = 1;
  int64_t run_bytes = 0;  // of the output
};

struct Concatenation {
  static bool accepts(const NodeTypes& t) {
    for (int i = 0; i < t.input_count && i < NodeTypes::kMax; ++i)
      if (!t.has_input[i] || !t.out(0, t.inputs[i])) return false;
    return t.input_count >= 1 && tensor_type_bits(t.inputs[0]) >= 8;
  }
  static Status prepare(Preparation& p);
  static Status prepare_written_rows(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::concatenation,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .takes_unsized = true};
};

// x with `rows` rows written at a row that is computed. Inputs: x, the rows, x, and of the slices before and behind them
// the starts and sizes.
struct WrittenRowsParams {
  int64_t rows = 0, all_rows = 0;
  int64_t row_bytes = 0;
  int32_t rank = 0;
  Shape shape;                     // of x
  int32_t slices[2] = {};          // number of the input with the starts; the sizes follow
  bool wide[2][2] = {};            // int64, not int32
};

#if ONEWEIGHT_HAS_KERNELS
inline void concatenation_kernel(const KernelArgs& args) {
  const auto& p = args.params<ConcatenationParams>();
  std::byte* out = args.out<std::byte>(0);
  for (int64_t run = args.rows.begin * p.runs_per_row; run < args.rows.end * p.runs_per_row; ++run) {
    std::byte* to = out + run * p.run_bytes;
    for (int32_t i = 0; i < p.count; ++i) {
      const ConcatenationPart& part = p.parts[i];
      const std::byte* from = args.in<std::byte>(part.input) + run * part.bytes;
      if (!part.table && to != from)
        std::memcpy(to, from, static_cast<size_t>(part.bytes));
      else if (part.table)
        for (int64_t k = 0; k < part.bytes; ++k)
          to[k] = static_cast<std::byte>(part.table[static_cast<uint8_t>(from[k])]);
      to += part.bytes;
    }
  }
}

inline void written_rows_kernel(const KernelArgs& args) {
  const auto& p = args.params<WrittenRowsParams>();
  const auto value = [&](int slice, int what, int axis) {
    const std::byte* from = args.in<std::byte>(p.slices[slice] + what);
    return p.wide[slice][what] ? Preparation::load<int64_t>(from, axis) : int64_t{Preparation::load<int32_t>(from, axis)};
  };
  const int64_t first = value(0, 1, 0), behind = value(1, 0, 0);
  bool whole = behind >= 0 && behind <= p.all_rows && value(0, 0, 0) == 0 && (value(1, 1, 0) == -1 || value(1, 1, 0) == p.all_rows - behind);
  for (int32_t i = 1; i < p.rank; ++i)
    for (int slice = 0; slice < 2; ++slice)
      whole = whole && value(slice, 0, i) == 0 && (value(slice, 1, i) == -1 || value(slice, 1, i) == p.shape[i]);
  if (!whole || first < 0 || first > p.all_rows - p.rows || behind != first + p.rows)
    return args.run->fail(ErrorCode::unsupported, "joins rows before %lld, %lld rows, and rows from %lld on, which are not %lld rows of one tensor",
                          static_cast<long long>(first), static_cast<long long>(p.rows), static_cast<long long>(behind),
                          static_cast<long long>(p.all_rows));
  const std::byte* x = args.in<std::byte>(0);
  std::byte* out = args.out<std::byte>(0);
  if (out != x) std::memcpy(out, x, static_cast<size_t>(p.all_rows * p.row_bytes));
  if (p.rows * p.row_bytes > 0) std::memcpy(out + first * p.row_bytes, args.in<std::byte>(1), static_cast<size_t>(p.rows * p.row_bytes));
}

ONEWEIGHT_INLINE Status Concatenation::prepare_written_rows(Preparation& p) {
  const auto refuse = [&] {
    return p.error(ErrorCode::unsupported, "joins parts whose shapes depend on values that are computed while running, other than the rows of one tensor "
                                           "before and behind those in between");
  };
  WrittenRowsParams* params = p.make_params<WrittenRowsParams>();
  if (!params) return p.no_memory();
  if (p.input_count() != 3 || !p.is_unsized(0) || p.is_unsized(1) || !p.is_unsized(2)) return refuse();
  if (!p.absorb_unsized(0, &params->slices[0]) || !p.absorb_unsized(2, &params->slices[1]) || !p.same_input(0, 2)) return refuse();
  const Operand &x = p.input(0), &rows = p.input(1), &out = p.output(0);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(0, 0), x.shape.rank(), &axis));
  if (axis != 0 || rows.shape.rank() != x.shape.rank() || x.type != out.type || rows.type != out.type) return refuse();
  for (int i = 1; i < x.shape.rank(); ++i)
    if (rows.shape[i] != x.shape[i]) return p.invalid("%s does not fit %s along axis 0", p.describe(rows).c_str(), p.describe(x).c_str());
  const auto alike = [&](const Operand& t) { return !t.quantized() || (t.scale() == out.scale() && t.zero_point() == out.zero_point()); };
  if (!alike(x) || !alike(rows)) return p.error(ErrorCode::unsupported, "its inputs and output have different scales");
  for (int slice = 0; slice < 2; ++slice)
    for (int what = 0; what < 2; ++what) params->wide[slice][what] = p.input(params->slices[slice] + what).type == TensorType::int64;
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, x, &element));
  params->rows = rows.shape[0], params->all_rows = x.shape[0];
  params->row_bytes = x.shape.elements(1, x.shape.rank()) * element;
  params->rank = x.shape.rank();
  params->shape = x.shape;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, x.shape));
  p.set_kernel(&written_rows_kernel);
  p.allow_in_place(0);
  return {};
}

ONEWEIGHT_INLINE Status Concatenation::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1 << 20));
  if (const int activation = p.options().get<int8_t>(1, 0))
    return p.error(ErrorCode::unsupported, "fused activation %d is not supported", activation);
  for (int i = 0; i < p.input_count(); ++i)
    if (p.has_input(i) && p.is_unsized(i)) return prepare_written_rows(p);
  const Operand &first = p.input(0), &output = p.output(0);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(0, 0), first.shape.rank(), &axis));
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, first, &element));
  ConcatenationPart* parts = p.derived<ConcatenationPart>(p.input_count());
  ConcatenationParams* params = p.make_params<ConcatenationParams>();
  if (!parts || !params) return p.no_memory();
  Shape shape = first.shape;
  shape[axis] = 0;
  const int64_t inner = first.shape.elements(axis + 1, first.shape.rank()) * element;
  for (int i = 0; i < p.input_count(); ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    const Operand& input = p.input(i);
    bool fits = input.type == output.type && input.shape.rank() == shape.rank();
    for (int k = 0; fits && k < shape.rank(); ++k) fits = k == axis || input.shape[k] == shape[k];
    if (!fits)
      return p.invalid("%s does not fit %s along axis %d", p.describe(input).c_str(), p.describe(first).c_str(), axis);
    shape[axis] += input.shape[axis];
    const bool alike = !output.quantized() || !input.quantized() ||
                       (input.scale() == output.scale() && input.zero_point() == output.zero_point());
    if (!alike && (output.type != TensorType::uint8 || output.scale() <= 0))
      return p.error(ErrorCode::unsupported,
                     "%s has scale %g and zero point %d, its output %g and %d: they must be equal",
                     p.describe(input).c_str(), static_cast<double>(input.scale()), input.zero_point(),
                     static_cast<double>(output.scale()), output.zero_point());
    const int64_t bytes = input.shape[axis] * inner;
    if (bytes <= 0) continue;
    ConcatenationPart& part = parts[params->count++];
    part.input = i;
    part.bytes = bytes;
    if (alike) continue;
    uint8_t* table = p.derived<uint8_t>(256);
    if (!table) return p.no_memory();
    const float scale = input.scale() * (1.0f / output.scale()), bias = -static_cast<float>(input.zero_point()) * scale;
    for (int k = 0; k < 256; ++k) {
      const float value =
          std::round(rounded(static_cast<float>(k) * scale) + bias) + static_cast<float>(output.zero_point());
      table[k] = static_cast<uint8_t>(value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value);
    }
    part.table = table;
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  params->parts = parts;
  params->run_bytes = shape[axis] * inner;
  const int row_axes = std::min(axis, 2);
  const int64_t rows = shape.elements(0, row_axes);
  params->runs_per_row = shape.elements(row_axes, axis);
  p.set_kernel(&concatenation_kernel, rows);
  if (axis >= 2) p.set_same_rows();
  // Parts that follow each other as a whole can be computed in their places.
  if (shape.elements(0, axis) == 1) {
    int64_t offset = 0;
    for (int32_t i = 0; i < params->count; offset += parts[i++].bytes)
      if (!parts[i].table) p.allow_gathered(parts[i].input, offset);
  } else if (params->count == 1 && !parts[0].table) {
    p.allow_alias(parts[0].input);
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CONCATENATION_H
