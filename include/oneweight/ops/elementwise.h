// What the operators on single elements share: how rows are counted, tables for 8-bit types.
#ifndef ONEWEIGHT_OPS_ELEMENTWISE_H
#define ONEWEIGHT_OPS_ELEMENTWISE_H

#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/ops/rounded.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Elements of an output in rows that can be computed apart: those of a rank-4 map are its image rows, so that bands
// fit those of spatial operators; anything else is split by its first axis.
struct ElementRows {
  int64_t rows = 1;
  int64_t row_elements = 0;

  explicit ElementRows(const Shape& shape = Shape()) {
    const int64_t elements = shape.elements();
    if (shape.rank() == 4) rows = shape[0] * shape[1];
    else if (shape.rank() > 0) rows = shape[0];
    if (rows <= 0) rows = 1;
    row_elements = elements / rows;
  }
  int64_t begin(RowRange range) const { return range.begin * row_elements; }
  int64_t end(RowRange range) const { return range.end * row_elements; }
};

// Parameters of a unary operator that needs nothing else.
struct UnaryParams {
  ElementRows elements;
};

// One input, one output of its shape, in place.
template <class P>
Status prepare_unary(Preparation& p, KernelFn kernel, P** params) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  *params = p.make_params<P>();
  if (!*params) return p.no_memory();
  (*params)->elements = ElementRows(p.input(0).shape);
  p.set_kernel(kernel, (*params)->elements.rows);
  p.set_same_rows();
  p.allow_in_place(0);
  return {};
}

// A function on 8-bit values by a table of 256 stored results, indexed by the bits of the input.
struct TableParams {
  ElementRows elements;
  const uint8_t* table = nullptr;
};

// Prepares output = round(f(real input) / output scale) + zero point for int8 and uint8, halves away from zero. f maps
// double to double, rounded to float as in TFLite's tables; a result that is not a number gives the zero point. kernel: that of
// ops/table-inl.h.
template <class F>
Status prepare_table(Preparation& p, KernelFn kernel, F f) {
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.input(0)));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.output(0)));
  TableParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, kernel, &params));
  uint8_t* table = p.derived<uint8_t>(256);
  if (!table) return p.no_memory();
  params->table = table;
  const bool is_signed = p.input(0).type == TensorType::int8;
  const float inverse = 1.0f / p.output(0).scale();
  const double low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  for (int i = 0; i < 256; ++i) {
    const int stored = is_signed ? static_cast<int8_t>(i) : i;
    const float real = p.input(0).scale() * static_cast<float>(stored - p.input(0).zero_point());
    const float value = static_cast<float>(f(static_cast<double>(real)));
    double q = std::round(static_cast<double>(rounded(value * inverse))) + p.output(0).zero_point();
    if (std::isnan(q)) q = p.output(0).zero_point();
    q = q < low ? low : q > high ? high : q;
    table[i] = static_cast<uint8_t>(static_cast<int>(q));
  }
  p.set_table(table);
  return {};
}

// The same for int16, computed for each element.
struct Int16Params {
  ElementRows elements;
  float in_scale = 1, out_scale = 1;
  int32_t in_zero_point = 0, out_zero_point = 0;
};
template <class Function>
void int16_kernel(const KernelArgs& args) {
  const auto& p = args.params<Int16Params>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const double real = static_cast<double>(p.in_scale) * (args.in<int16_t>(0)[i] - p.in_zero_point);
    double q = std::round(Function::value(real) / static_cast<double>(p.out_scale)) + p.out_zero_point;
    if (std::isnan(q)) q = p.out_zero_point;
    args.out<int16_t>(0)[i] = static_cast<int16_t>(q < -32768 ? -32768 : q > 32767 ? 32767 : q);
  }
}
template <class Function>
Status prepare_int16(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.input(0)));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.output(0)));
  Int16Params* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, &int16_kernel<Function>, &params));
  params->in_scale = p.input(0).scale(), params->out_scale = p.output(0).scale();
  params->in_zero_point = p.input(0).zero_point(), params->out_zero_point = p.output(0).zero_point();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ELEMENTWISE_H
