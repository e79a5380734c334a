// What every BATCH_MATMUL checks and states, whatever its storage types.
#ifndef ONEWEIGHT_OPS_BATCH_MATMUL_NODE_H
#define ONEWEIGHT_OPS_BATCH_MATMUL_NODE_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace v1 {

// out[b][m][n] = sum over k of x[b][m][k] * y[b][k][n]; the last two axes of an operand with adj are stored in the other order.
struct BatchMatMulNode {
  int64_t batch = 1;           // matrices of the output
  int64_t rows = 1, terms = 1, channels = 1;  // m, k, n
  bool adj_x = false, adj_y = false;
  bool asymmetric = false;     // hybrid
  // Where the operands' matrices lie: axes of the output's batch, with their distances in matrices (0: broadcast).
  int dims = 0;
  int64_t extent[kMaxRank] = {}, x_step[kMaxRank] = {}, y_step[kMaxRank] = {};

  double work() const { return static_cast<double>(batch) * rows * channels * terms; }
  struct Matrices { int64_t x, y; };  // their first elements
  Matrices matrices(int64_t b) const {
    int64_t x = 0, y = 0;
    for (int i = dims - 1; i >= 0; --i) {
      x += b % extent[i] * x_step[i], y += b % extent[i] * y_step[i];
      b /= extent[i];
    }
    return {x * rows * terms, y * terms * channels};
  }
  // Distances in x of neighbouring rows and terms.
  int64_t x_row() const { return adj_x ? 1 : terms; }
  int64_t x_term() const { return adj_x ? rows : 1; }
};

// Checks the node and states the output's shape.
inline Status read_batch_matmul(Preparation& p, BatchMatMulNode* node) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &x = p.input(0), &y = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, 2, kMaxRank));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(y, 2, kMaxRank));
  BatchMatMulNode& n = *node;
  n.adj_x = p.options().get<bool>(0, false), n.adj_y = p.options().get<bool>(1, false);
  n.asymmetric = p.options().get<bool>(2, false);
  const auto end = [](const Operand& t, int i) { return t.shape[t.shape.rank() - i]; };
  n.rows = end(x, n.adj_x ? 1 : 2), n.terms = end(x, n.adj_x ? 2 : 1), n.channels = end(y, n.adj_y ? 2 : 1);
  if (end(y, n.adj_y ? 1 : 2) != n.terms)
    return p.invalid("%s%s and %s%s do not fit: sums of %lld and of %lld terms", p.describe(x).c_str(), n.adj_x ? " (adj_x)" : "",
                     p.describe(y).c_str(), n.adj_y ? " (adj_y)" : "", static_cast<long long>(n.terms),
                     static_cast<long long>(end(y, n.adj_y ? 1 : 2)));
  const auto batch_of = [](const Shape& s) {
    Shape batch;
    for (int i = 0; i < s.rank() - 2; ++i) batch.push_back(s[i]);
    return batch;
  };
  const Shape xs = batch_of(x.shape), ys = batch_of(y.shape);
  Shape out;
  ONEWEIGHT_RETURN_IF_ERROR(p.broadcast(xs, ys, &out));
  n.dims = out.rank();
  int64_t x_step = 1, y_step = 1;
  for (int i = n.dims - 1; i >= 0; --i) {
    const int xi = i - (n.dims - xs.rank()), yi = i - (n.dims - ys.rank());
    n.extent[i] = out[i];
    if (xi >= 0) n.x_step[i] = xs[xi] == 1 ? 0 : x_step, x_step *= xs[xi];
    if (yi >= 0) n.y_step[i] = ys[yi] == 1 ? 0 : y_step, y_step *= ys[yi];
  }
  n.batch = out.elements();
  out.push_back(n.rows);
  out.push_back(n.channels);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, out));
  if (n.batch > 0 && ys.elements() == 1 && !n.adj_x) {  // one matrix for all rows
    n.rows *= n.batch;
    n.batch = 1, n.dims = 0;
  }
  return {};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BATCH_MATMUL_NODE_H
