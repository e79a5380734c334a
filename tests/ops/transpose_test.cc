// TRANSPOSE and the other operators that only rearrange.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

// A model of one operator with input x, one constant int32 vector per entry of `constants`, and output y.
template <class T>
ModelBuilder arrange_model(BuiltinOperator code, const Shape& in, const std::vector<std::vector<int32_t>>& constants) {
  ModelBuilder m;
  const int x = m.tensor(tensor_type_of<T>, dims(in), "x");
  std::vector<int32_t> inputs = {x};
  for (const auto& c : constants)
    inputs.push_back(m.tensor(TensorType::int32, {static_cast<int32_t>(c.size())}).values(c));
  if (code == BuiltinOperator::space_to_batch_nd || code == BuiltinOperator::batch_to_space_nd)
    m.spec.subgraphs[0].tensors.back().shape = {static_cast<int32_t>(constants.back().size() / 2), 2};
  const int y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(code, inputs, {y});
  m.inputs({x}).outputs({y});
  return m;
}

// from: input index behind an output index.
template <class T, class From>
void check_arranged(const ModelBuilder& m, const Shape& in, const Shape& out, From from) {
  Random random(6);
  const auto x = random.values<T>(in.elements());
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const std::vector<int64_t> at = from(unravel(out, i));
    want.push_back(at.empty() && in.rank() > 0 ? T(0) : x[static_cast<size_t>(ravel(in, at))]);
  }
  INFO(in.to_string() << " to " << out.to_string());
  check_values(run_on_targets(m, {bytes_of(x)}), out, want);
}

template <class T>
void check_transpose(const Shape& in, const std::vector<int32_t>& order) {
  Shape out;
  for (int32_t axis : order) out.push_back(in[axis < 0 ? axis + in.rank() : axis]);
  check_arranged<T>(arrange_model<T>(BuiltinOperator::transpose, in, {order}), in, out,
                    [&](const std::vector<int64_t>& at) {
                      std::vector<int64_t> source(at.size());
                      for (size_t k = 0; k < at.size(); ++k)
                        source[static_cast<size_t>(order[k] < 0 ? order[k] + in.rank() : order[k])] = at[k];
                      return source;
                    });
}

template <class T>
ModelBuilder blocks_model(BuiltinOperator code, const Shape& in, int32_t block) {
  ModelBuilder m;
  const int x = m.tensor(tensor_type_of<T>, dims(in), "x"), y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(code, {x}, {y}).options(code == BuiltinOperator::depth_to_space ? 94 : 19).field(0, block);
  m.inputs({x}).outputs({y});
  return m;
}

}  // namespace

TEST_CASE("transpositions of every element size and rank", "[ops][transpose]") {
  check_transpose<float>({3, 5}, {1, 0});
  check_transpose<int8_t>({33, 50}, {1, 0});
  check_transpose<int16_t>({4, 17, 3}, {2, 0, 1});
  check_transpose<float>({2, 7, 5, 19}, {0, 3, 1, 2});
  check_transpose<float>({2, 19, 7, 5}, {0, 2, 3, 1});
  check_transpose<int64_t>({2, 3, 4, 5}, {3, 2, 1, 0});
  check_transpose<float>({2, 3, 4, 5}, {0, 2, -3, 3});
  check_transpose<float>({1, 3, 1, 5}, {2, 1, 0, 3});  // nothing moves
  check_transpose<float>({2, 3, 1, 2, 2, 3}, {5, 0, 4, 1, 3, 2});
  check_transpose<float>({2, 1, 2, 3, 1, 2, 2, 2}, {7, 6, 5, 4, 3, 2, 1, 0});
  check_transpose<float>({3, 0, 2}, {2, 1, 0});
  check_transpose<float>({}, {});
  const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(6))};
  const auto refused = [&](const std::vector<int32_t>& order) {
    return run_on_targets(arrange_model<float>(BuiltinOperator::transpose, {2, 3}, {order}), input);
  };
  check_refused(refused({0, 0}), ErrorCode::invalid_model, "axis 0 occurs twice");
  check_refused(refused({0, 2}), ErrorCode::invalid_model, "axis 2 is outside rank 2");
  check_refused(refused({0}), ErrorCode::invalid_model, "permutes 1 axes of tensor 'x' float32 [2, 3]");
}

TEST_CASE("tiles, broadcasts and reversals", "[ops][tile][broadcast_to][reverse_v2]") {
  const auto tile = [](const Shape& in, const std::vector<int32_t>& times) {
    Shape out;
    for (int i = 0; i < in.rank(); ++i) out.push_back(in[i] * times[i]);
    check_arranged<float>(arrange_model<float>(BuiltinOperator::tile, in, {times}), in, out,
                          [&](std::vector<int64_t> at) {
                            for (int i = 0; i < in.rank(); ++i) at[i] %= in[i];
                            return at;
                          });
  };
  tile({3}, {2});
  tile({2, 3, 2}, {2, 1, 3});
  tile({1, 3}, {4, 0});
  tile({2, 1, 2, 1, 2, 1, 1, 2}, {1, 2, 1, 1, 2, 1, 2, 1});
  const auto broadcast = [](const Shape& in, const std::vector<int32_t>& shape) {
    Shape out;
    for (int32_t e : shape) out.push_back(e);
    check_arranged<int16_t>(arrange_model<int16_t>(BuiltinOperator::broadcast_to, in, {shape}), in, out,
                            [&](const std::vector<int64_t>& at) {
                              std::vector<int64_t> source;
                              for (int i = 0; i < in.rank(); ++i)
                                source.push_back(in[i] == 1 ? 0 : at[static_cast<size_t>(i + out.rank() - in.rank())]);
                              return source;
                            });
  };
  broadcast({3}, {2, 3});
  broadcast({2, 1, 3}, {4, 2, 5, 3});
  broadcast({}, {2, 2});
  broadcast({1, 3}, {0, 3});
  const auto reverse = [](const Shape& in, const std::vector<int32_t>& axes) {
    check_arranged<int8_t>(arrange_model<int8_t>(BuiltinOperator::reverse_v2, in, {axes}), in, in,
                           [&](std::vector<int64_t> at) {
                             for (int32_t a : axes) at[a] = in[a] - 1 - at[a];
                             return at;
                           });
  };
  reverse({5}, {0});
  reverse({2, 3, 4}, {1});
  reverse({2, 3, 4}, {0, 2});
  reverse({2, 0, 4}, {0, 1});
  const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(6))};
  check_refused(run_on_targets(arrange_model<float>(BuiltinOperator::tile, {2, 3}, {{1, -1}}), input),
                ErrorCode::invalid_model, "cannot repeat axis 1");
  check_refused(run_on_targets(arrange_model<float>(BuiltinOperator::broadcast_to, {2, 3}, {{3, 3}}), input),
                ErrorCode::invalid_model, "does not broadcast to [3, 3]");
  check_refused(run_on_targets(arrange_model<float>(BuiltinOperator::broadcast_to, {2, 3}, {{3}}), input),
                ErrorCode::invalid_model, "does not broadcast");
  check_refused(run_on_targets(arrange_model<float>(BuiltinOperator::reverse_v2, {2, 3}, {{1, -1}}), input),
                ErrorCode::invalid_model, "axis 1 is named twice");
}

TEST_CASE("blocks of pixels and channels", "[ops][depth_to_space]") {
  const Shape deep{2, 3, 2, 12}, wide{2, 6, 4, 3};
  check_arranged<float>(
      blocks_model<float>(BuiltinOperator::depth_to_space, deep, 2), deep, wide, [](const std::vector<int64_t>& at) {
        return std::vector<int64_t>{at[0], at[1] / 2, at[2] / 2, (at[1] % 2 * 2 + at[2] % 2) * 3 + at[3]};
      });
  check_arranged<int8_t>(
      blocks_model<int8_t>(BuiltinOperator::space_to_depth, wide, 2), wide, deep, [](const std::vector<int64_t>& at) {
        return std::vector<int64_t>{at[0], at[1] * 2 + at[3] / 6, at[2] * 2 + at[3] / 3 % 2, at[3] % 3};
      });
  const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(144))};
  check_refused(run_on_targets(blocks_model<float>(BuiltinOperator::space_to_depth, wide, 0), input),
                ErrorCode::invalid_model, "block size 0 is not positive");
  check_refused(run_on_targets(blocks_model<float>(BuiltinOperator::space_to_depth, wide, 4), input),
                ErrorCode::invalid_model, "cannot be cut into blocks of 4");
  check_refused(run_on_targets(blocks_model<float>(BuiltinOperator::depth_to_space, deep, 5), input),
                ErrorCode::invalid_model, "cannot be cut into blocks of 5");
}

TEST_CASE("batches of block places", "[ops][batch_space_nd]") {
  const Shape image{2, 3, 4, 2}, batches{12, 2, 2, 2};  // block 2 x 3, margins 1,0 and 0,2
  check_arranged<float>(
      arrange_model<float>(BuiltinOperator::space_to_batch_nd, image, {{2, 3}, {1, 0, 0, 2}}), image, batches,
      [](const std::vector<int64_t>& at) {
        const int64_t y = at[1] * 2 + at[0] / 2 / 3 - 1, x = at[2] * 3 + at[0] / 2 % 3;
        return y < 0 || x >= 4 ? std::vector<int64_t>{} : std::vector<int64_t>{at[0] % 2, y, x, at[3]};
      });
  check_arranged<float>(arrange_model<float>(BuiltinOperator::batch_to_space_nd, batches, {{2, 3}, {1, 0, 0, 2}}),
                        batches, image, [](const std::vector<int64_t>& at) {
                          const int64_t y = at[1] + 1, x = at[2];
                          return std::vector<int64_t>{(y % 2 * 3 + x % 3) * 2 + at[0], y / 2, x / 3, at[3]};
                        });
  const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(48))};
  check_refused(
      run_on_targets(arrange_model<float>(BuiltinOperator::space_to_batch_nd, image, {{2, 3}, {0, 0, 0, 2}}), input),
      ErrorCode::invalid_model,
      "axis 1 of tensor 'x' float32 [2, 3, 4, 2] with margins 0, 0 is not a multiple of the block size 2");
  check_refused(
      run_on_targets(arrange_model<float>(BuiltinOperator::space_to_batch_nd, image, {{0, 3}, {0, 0, 0, 2}}), input),
      ErrorCode::invalid_model, "block size 0");
  check_refused(
      run_on_targets(arrange_model<float>(BuiltinOperator::batch_to_space_nd, image, {{2, 3}, {0, 0, 0, 0}}), input),
      ErrorCode::invalid_model, "not a multiple of the 6 places");
}

TEST_CASE("squeezed and expanded shapes", "[ops][squeeze][expand_dims]") {
  const auto squeeze = [](const Shape& in, const std::vector<int32_t>& axes) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, dims(in), "x"), y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::squeeze, {x}, {y}).options(30).vector(0, axes);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {bytes_of(std::vector<float>(6, 1.5f))});
  };
  const std::vector<float> same(6, 1.5f);
  check_values(squeeze({1, 2, 1, 3}, {}), {2, 3}, same);
  check_values(squeeze({1, 2, 1, 3}, {-2}), {1, 2, 3}, same);
  check_refused(squeeze({1, 2, 1, 3}, {1}), ErrorCode::invalid_model, "its extent is not 1");
  check_refused(squeeze({1, 2, 1, 3}, {4}), ErrorCode::invalid_model, "axis 4 is outside rank 4");
  const auto expand = [](int32_t axis) {
    return run_on_targets(arrange_model<float>(BuiltinOperator::expand_dims, {2, 3}, {{axis}}),
                          {bytes_of(std::vector<float>(6, 1.5f))});
  };
  check_values(expand(0), {1, 2, 3}, same);
  check_values(expand(-1), {2, 3, 1}, same);
  check_refused(expand(-100000), ErrorCode::invalid_model, "axis -100000 is outside rank 3");
}
