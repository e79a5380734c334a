// Broadcasting of up to three operands in plain loops, for operators that are rarely the hot ones.
#ifndef ONEWEIGHT_OPS_BROADCAST_H
#define ONEWEIGHT_OPS_BROADCAST_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Element strides of each operand over the axes of the output; 0 where the operand repeats. Neighbouring axes
// that all operands walk alike are merged, so that the innermost loop is long.
template <int N>
struct BroadcastPlan {
  int rank = 0;
  int64_t extents[kMaxRank] = {};
  int64_t strides[N][kMaxRank] = {};
};

template <int N>
BroadcastPlan<N> plan_broadcast(const Shape& output, const Shape* const (&inputs)[N]) {
  BroadcastPlan<N> plan;
  int64_t step[N];
  for (int n = 0; n < N; ++n) step[n] = 1;
  // From the innermost axis out; then reversed.
  for (int i = output.rank() - 1; i >= 0; --i) {
    if (output[i] == 1) continue;
    int64_t stride[N];
    for (int n = 0; n < N; ++n) {
      const int axis = i - (output.rank() - inputs[n]->rank());
      const int64_t extent = axis < 0 ? 1 : (*inputs[n])[axis];
      stride[n] = extent == 1 ? 0 : step[n];
      step[n] *= extent;
    }
    bool merged = plan.rank > 0;
    for (int n = 0; n < N && merged; ++n) merged = stride[n] == plan.strides[n][plan.rank - 1] * plan.extents[plan.rank - 1];
    if (merged) {
      plan.extents[plan.rank - 1] *= output[i];
      continue;
    }
    plan.extents[plan.rank] = output[i];
    for (int n = 0; n < N; ++n) plan.strides[n][plan.rank] = stride[n];
    ++plan.rank;
  }
  for (int i = 0; i < plan.rank / 2; ++i) {
    std::swap(plan.extents[i], plan.extents[plan.rank - 1 - i]);
    for (int n = 0; n < N; ++n) std::swap(plan.strides[n][i], plan.strides[n][plan.rank - 1 - i]);
  }
  return plan;
}

// Calls row(output index, input indices, count, inner strides) for each innermost run of the output elements
// [begin, end), cut where the range begins or ends inside a run.
template <int N, class Row>
void for_each_run(const BroadcastPlan<N>& plan, int64_t begin, int64_t end, Row row) {
  if (end <= begin) return;
  const int inner = plan.rank - 1;
  const int64_t length = plan.rank > 0 ? plan.extents[inner] : 1;
  int64_t index[kMaxRank] = {}, at[N] = {}, step[N] = {};
  for (int n = 0; n < N && plan.rank > 0; ++n) step[n] = plan.strides[n][inner];
  int64_t run = begin / length;
  for (int i = inner - 1; i >= 0; --i) {
    index[i] = run % plan.extents[i];
    run /= plan.extents[i];
    for (int n = 0; n < N; ++n) at[n] += index[i] * plan.strides[n][i];
  }
  for (int64_t out = begin / length * length; out < end; out += length) {
    const int64_t first = out < begin ? begin - out : 0, last = out + length > end ? end - out : length;
    int64_t start[N];
    for (int n = 0; n < N; ++n) start[n] = at[n] + first * step[n];
    row(out + first, start, last - first, step);
    for (int i = inner - 1; i >= 0; --i) {
      for (int n = 0; n < N; ++n) at[n] += plan.strides[n][i];
      if (++index[i] < plan.extents[i]) break;
      for (int n = 0; n < N; ++n) at[n] -= plan.strides[n][i] * plan.extents[i];
      index[i] = 0;
    }
  }
}

// Kernel of a binary operator: out[i] = F::apply(a[i], b[i], args) with broadcasting. Params: any struct with `broadcast`. A row is an
// element.
template <class In, class Out, class F>
void broadcast_kernel(const KernelArgs& args) {
  const auto& p = args.params<typename F::Params>();
  const In *a = args.in<In>(0), *b = args.in<In>(1);
  Out* out = args.out<Out>(0);
  for_each_run(p.broadcast, args.rows.begin, args.rows.end, [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) {
    for (int64_t i = 0; i < count; ++i) out[o + i] = F::apply(a[at[0] + i * step[0]], b[at[1] + i * step[1]], p, args.run);
  });
}

inline void set_broadcast_kernel(Preparation& p, KernelFn kernel) {
  p.set_kernel(kernel, std::max<int64_t>(p.output(0).shape.elements(), 0));
  p.set_same_rows();
}

struct BroadcastParams {
  BroadcastPlan<2> broadcast;
};

// Output shape, parameters and (where shapes allow) in-place for a binary operator whose kernel needs P.
template <class P>
Status prepare_broadcast(Preparation& p, P** params) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  Shape shape;
  ONEWEIGHT_RETURN_IF_ERROR(p.broadcast(p.input(0).shape, p.input(1).shape, &shape));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  *params = p.make_params<P>();
  if (!*params) return p.no_memory();
  const Shape* const inputs[2] = {&p.input(0).shape, &p.input(1).shape};
  (*params)->broadcast = plan_broadcast<2>(shape, inputs);
  if (p.input(0).type == p.output(0).type && p.input(0).shape == shape) p.allow_in_place(0);
  if (p.input(1).type == p.output(0).type && p.input(1).shape == shape) p.allow_in_place(1);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BROADCAST_H
