#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T>
ModelBuilder pad_model(BuiltinOperator code, const Shape& in, const std::vector<int32_t>& margins,
                       int64_t zero_point = 0, int8_t mode = 0) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<T>, dims(in), "x");
  if (zero_point) x.quantized(0.5f, zero_point);
  const int input = x;
  const int paddings = m.tensor(TensorType::int32, {in.rank(), 2}, "paddings").values(margins);
  auto y = m.tensor(tensor_type_of<T>, {}, "y");
  if (zero_point) y.quantized(0.5f, zero_point);
  const int output = y;
  std::vector<int32_t> inputs = {input, paddings};
  if (code == BuiltinOperator::padv2)
    inputs.push_back(m.tensor(tensor_type_of<T>, {}, "fill").template values<T>({T(42)}));
  auto op = m.op(code, inputs, {output});
  if (code == BuiltinOperator::mirror_pad) op.options(77).field(0, mode);
  m.inputs({input}).outputs({output});
  return m;
}

// source: input index along an axis of padded index `at` (before the input: negative), or -1 for the fill.
template <class T, class Source>
void check_pad(BuiltinOperator code, const Shape& in, const std::vector<int32_t>& margins, T fill, Source source,
               int64_t zero_point = 0, int8_t mode = 0) {
  Random random(4);
  const auto x = random.values<T>(in.elements());
  Shape out;
  for (int i = 0; i < in.rank(); ++i) out.push_back(in[i] + margins[2 * i] + margins[2 * i + 1]);
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    auto at = unravel(out, i);
    bool inside = true;
    for (int k = 0; k < in.rank(); ++k) {
      at[k] = source(at[k] - margins[2 * k], in[k]);
      inside = inside && at[k] >= 0;
    }
    want.push_back(inside ? x[ravel(in, at)] : fill);
  }
  check_values(run_on_targets(pad_model<T>(code, in, margins, zero_point, mode), {bytes_of(x)}), out, want);
}
int64_t inside_only(int64_t x, int64_t n) { return x < n ? x : -1; }

}  // namespace

TEST_CASE("constant margins of every rank and type", "[ops][pad]") {
  const auto pad = BuiltinOperator::pad;
  check_pad<float>(pad, {3}, {1, 2}, 0, inside_only);
  check_pad<float>(pad, {2, 3, 4, 5}, {0, 0, 1, 2, 3, 0, 0, 0}, 0, inside_only);
  check_pad<float>(pad, {2, 3, 4, 5}, {1, 0, 0, 1, 0, 0, 2, 1}, 0, inside_only);
  check_pad<int8_t>(pad, {1, 3, 3, 2}, {0, 0, 1, 1, 1, 1, 0, 0}, -7, inside_only, -7);
  check_pad<uint8_t>(pad, {2, 2}, {1, 0, 0, 1}, 9, inside_only, 9);
  check_pad<int64_t>(pad, {2, 1, 2}, {0, 1, 1, 0, 1, 1}, 0, inside_only);
  check_pad<float>(pad, {2, 0}, {0, 1, 1, 1}, 0, inside_only);
  check_pad<float>(pad, {2, 2, 1, 2, 2, 1, 2, 2}, {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1}, 0, inside_only);
  check_pad<float>(pad, {2, 2}, {0, 0, 0, 0}, 0, inside_only);
  check_pad<float>(BuiltinOperator::padv2, {2, 3}, {1, 1, 0, 2}, 42, inside_only);
  check_pad<int16_t>(BuiltinOperator::padv2, {2, 3, 2}, {1, 1, 0, 2, 1, 0}, 42, inside_only);
}

TEST_CASE("mirrored margins", "[ops][mirror_pad]") {
  const auto reflect = [](int64_t x, int64_t n) { return x < 0 ? -x : x >= n ? 2 * n - 2 - x : x; };
  const auto symmetric = [](int64_t x, int64_t n) { return x < 0 ? -x - 1 : x >= n ? 2 * n - 1 - x : x; };
  check_pad<float>(BuiltinOperator::mirror_pad, {3, 4}, {2, 1, 3, 2}, 0, reflect, 0, 0);
  check_pad<int8_t>(BuiltinOperator::mirror_pad, {2, 3, 4}, {2, 1, 0, 3, 4, 2}, 0, symmetric, 0, 1);
}

TEST_CASE("margins that cannot be are refused", "[ops][pad]") {
  const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(4))};
  check_refused(run_on_targets(pad_model<float>(BuiltinOperator::pad, {2, 2}, {0, -1, 0, 0}), input),
                ErrorCode::invalid_model, "padding 0, -1 of axis 0");
  check_refused(run_on_targets(pad_model<float>(BuiltinOperator::mirror_pad, {2, 2}, {2, 2, 0, 0}), input),
                ErrorCode::invalid_model,
                "axis 0 of tensor 'x' float32 [2, 2] can mirror at most 1 elements, not 2 and 2");
  check_refused(run_on_targets(pad_model<float>(BuiltinOperator::mirror_pad, {2, 2}, {0, 3, 0, 0}, 0, 1), input),
                ErrorCode::invalid_model, "at most 2");
  check_refused(run_on_targets(pad_model<float>(BuiltinOperator::mirror_pad, {2, 2}, {0, 1, 0, 0}, 0, 2), input),
                ErrorCode::invalid_model, "mode 2");
}
