#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

std::vector<RunResult> densify(const std::vector<int32_t>& shape, const std::vector<float>& stored,
                               const SparsitySpec& sparsity) {
  ModelBuilder m;
  auto x = m.tensor(TensorType::float32, shape, "sparse").values(stored);
  x.spec().sparsity = sparsity;
  const int in = x, y = m.tensor(TensorType::float32, shape, "y");
  m.op(BuiltinOperator::densify, {in}, {y});
  m.inputs({}).outputs({y});
  return run_on_targets(m);
}

}  // namespace

TEST_CASE("compressed rows, blocks and other orders", "[ops][densify]") {
  // 0 1 0 / 2 0 3
  check_values<float>(
      densify({2, 3}, {1, 2, 3}, {{0, 1}, {}, {{false, 2, 4, {}, {}}, {true, 0, 1, {0, 1, 3}, {1, 0, 2}}}}), {2, 3},
      {0, 1, 0, 2, 0, 3});
  // The same by columns.
  check_values<float>(
      densify({2, 3}, {2, 1, 3}, {{1, 0}, {}, {{false, 3, 4, {}, {}}, {true, 0, 2, {0, 1, 2, 3}, {1, 0, 1}}}}), {2, 3},
      {0, 1, 0, 2, 0, 3});
  // Blocks of 1 x 2 in a matrix of 2 x 4: the second block of row 0, the first of row 1.
  check_values<float>(
      densify({2, 4}, {1, 2, 3, 4},
              {{0, 1, 2}, {1}, {{false, 2, 4, {}, {}}, {true, 0, 4, {0, 1, 2}, {1, 0}}, {false, 2, 4, {}, {}}}}),
      {2, 4}, {0, 0, 1, 2, 3, 4, 0, 0});
}

TEST_CASE("sparse indices outside the tensor or its values are refused", "[ops][densify]") {
  const auto refused = [](const std::vector<int32_t>& segments, const std::vector<int32_t>& indices) {
    check_refused(densify({2, 3}, {1, 2, 3}, {{0, 1}, {}, {{false, 2, 4, {}, {}}, {true, 0, 4, segments, indices}}}),
                  ErrorCode::invalid_model,
                  "the sparse indices of tensor 'sparse' float32 [2, 3] lie outside its shape or its 3 stored values");
  };
  refused({0, 1, 3}, {1, 0, 3});  // a column too far
  refused({0, 1, 3}, {1, 0, -1});
  refused({0, 1, 4}, {1, 0, 2});     // more entries than indices
  refused({0, 1}, {1, 0, 2});        // too few segments
  refused({0, 2, 1}, {1, 0, 2});     // backwards
  refused({0, 2, 4}, {1, 0, 2, 1});  // more entries than values
  check_refused(densify({2, 3}, {1, 2, 3}, {{0, 1}, {}, {{false, 5, 4, {}, {}}, {true, 0, 4, {0, 1, 3}, {1, 0, 2}}}}),
                ErrorCode::invalid_model, "has a dense dimension of 5 where its shape has 2");
}
