// BATCH_MATMUL: float, or float with a half second operand that is widened in registers.
// x [..., M, K] (adj_x: [..., K, M]) times y [..., K, N] (adj_y: [..., N, K]); batch axes broadcast. Either operand may be constant.
// Sums in float: one multiply-add after the other; or, with adj_y and few rows or channels, in vector lanes that are added at
// the end. Which of the two depends on the shapes alone.
// Scratch: a part of y, with terms apart (at most 256 KiB), and rows of x that are gathered because of adj_x.
// Rows: batch * M; where M is small, batch * blocks of 64 columns.
#ifndef ONEWEIGHT_OPS_BATCH_MATMUL_H
#define ONEWEIGHT_OPS_BATCH_MATMUL_H

#include "oneweight/ops/batch_matmul_node.h"
#include "oneweight/simd/product.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Y: storage of the second operand, X: of the first.
template <class Y, class X> struct BatchMatMul;

struct BatchMatMulFloatParams {
  BatchMatMulNode node;
  int64_t block = 0;           // output channels of a unit of work; 0: a unit is a row
  FusedActivation activation;
};

template <class Y>
struct BatchMatMul<Y, float> {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(0, TensorType::float32) && t.in(1, tensor_type_of<Y>) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::batch_matmul,
                                .types = sizeof(Y) == 2 ? "float, half second operand" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(Y) == 2 ? 1u << 1 : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_BATCH_MATMUL_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_BATCH_MATMUL_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_BATCH_MATMUL_KERNELS
#undef ONEWEIGHT_OPS_BATCH_MATMUL_KERNELS
#else
#define ONEWEIGHT_OPS_BATCH_MATMUL_KERNELS
#endif

#include "oneweight/simd/product_float-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// Few rows of x times a y whose channels lie together: y is read once, where it lies.
template <class Y>
struct ColumnsArgs {
  const float* x;
  int64_t x_row, x_term;
  const Y* y;
  int64_t y_term;
  int64_t terms, channels;
  float* out;
  int64_t out_stride;
};

template <int kRows, int kVectors, class Y>
HWY_NOINLINE void product_columns(const ColumnsArgs<Y>& t, int64_t n, size_t last) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = t.x;
  const Y* y = t.y + n;
#define ONEWEIGHT_COLUMNS_ROWS(X) X(0) X(1) X(2) X(3)
#define ONEWEIGHT_COLUMNS_DECLARE(r) [[maybe_unused]] V s##r##0 = hn::Zero(d), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
  ONEWEIGHT_COLUMNS_ROWS(ONEWEIGHT_COLUMNS_DECLARE)
#undef ONEWEIGHT_COLUMNS_DECLARE
  const bool whole = last == static_cast<size_t>(lanes);
  constexpr int64_t kAhead = 16;  // terms whose part of y is fetched into the cache early
  for (int64_t k = 0; k < t.terms; ++k, y += t.y_term, x += t.x_term) {
    const auto load = [&](int v) HWY_ATTR {
      return v < kVectors - 1 || whole ? load_widened(d, y + v * lanes) : load_widened_n(d, y + v * lanes, last);
    };
    const V b0 = load(0);
    [[maybe_unused]] const V b1 = kVectors > 1 ? load(1) : b0, b2 = kVectors > 2 ? load(2) : b0, b3 = kVectors > 3 ? load(3) : b0;
    for (int v = 0; v < kVectors; ++v) prefetch_later(y + kAhead * t.y_term + v * lanes);
#define ONEWEIGHT_COLUMNS_STEP(r)                                       \
  if constexpr (r < kRows) {                                            \
    const V a = hn::Set(d, x[r * t.x_row]);                             \
    s##r##0 = hn::MulAdd(a, b0, s##r##0);                               \
    if constexpr (kVectors > 1) s##r##1 = hn::MulAdd(a, b1, s##r##1);   \
    if constexpr (kVectors > 2) s##r##2 = hn::MulAdd(a, b2, s##r##2);   \
    if constexpr (kVectors > 3) s##r##3 = hn::MulAdd(a, b3, s##r##3);   \
  }
    ONEWEIGHT_COLUMNS_ROWS(ONEWEIGHT_COLUMNS_STEP)
#undef ONEWEIGHT_COLUMNS_STEP
  }
  float* to = t.out + n;
#define ONEWEIGHT_COLUMNS_STORE(r, v)                                   \
  if constexpr (r < kRows && v < kVectors) {                            \
    float* at = to + r * t.out_stride + v * lanes;                      \
    if (v < kVectors - 1 || whole) hn::StoreU(s##r##v, d, at);          \
    else hn::StoreN(s##r##v, d, at, last);                              \
  }
#define ONEWEIGHT_COLUMNS_STORE_ROW(r) \
  ONEWEIGHT_COLUMNS_STORE(r, 0) ONEWEIGHT_COLUMNS_STORE(r, 1) ONEWEIGHT_COLUMNS_STORE(r, 2) ONEWEIGHT_COLUMNS_STORE(r, 3)
  ONEWEIGHT_COLUMNS_ROWS(ONEWEIGHT_COLUMNS_STORE_ROW)
#undef ONEWEIGHT_COLUMNS_STORE_ROW
#undef ONEWEIGHT_COLUMNS_STORE
#undef ONEWEIGHT_COLUMNS_ROWS
}

template <int kRows, class Y>
void run_columns(const ColumnsArgs<Y>& t) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  for (int64_t n = 0; n < t.channels;) {
    const int64_t left = t.channels - n, vectors = std::min<int64_t>(4, (left + lanes - 1) / lanes);
    const size_t last = static_cast<size_t>(std::min(left - (vectors - 1) * lanes, lanes));
    switch (vectors) {
      case 1: product_columns<kRows, 1>(t, n, last); break;
      case 2: product_columns<kRows, 2>(t, n, last); break;
      case 3: product_columns<kRows, 3>(t, n, last); break;
      default: product_columns<kRows, 4>(t, n, last); break;
    }
    n += vectors * lanes;
  }
}

template <class Y>
void batch_matmul_float(const KernelArgs& args) {
  const BatchMatMulFloatParams& p = args.params<BatchMatMulFloatParams>();
  const BatchMatMulNode& g = p.node;
  const float* x = args.in<float>(0);
  const Y* y = args.in<Y>(1);
  float* const out = args.out<float>(0);
  const Epilogue e = make_epilogue(nullptr, p.activation);
  if (p.block > 0) {
    const int64_t blocks = (g.channels + p.block - 1) / p.block;
    for (int64_t unit = args.rows.begin; unit < args.rows.end; ++unit) {
      const int64_t b = unit / blocks, first = unit % blocks * p.block, count = std::min(p.block, g.channels - first);
      const BatchMatMulNode::Matrices at = g.matrices(b);
      float* const to = out + b * g.rows * g.channels + first;
      if (!g.adj_y) {
        ColumnsArgs<Y> t{x + at.x, g.x_row(), g.x_term(), y + at.y + first, g.channels, g.terms, count, to, g.channels};
        int64_t m = 0;
        if constexpr (kTileRows > 6)  // registers enough
          for (; m + 4 <= g.rows; m += 4, t.x += 4 * t.x_row, t.out += 4 * t.out_stride) run_columns<4>(t);
        for (; m + 2 <= g.rows; m += 2, t.x += 2 * t.x_row, t.out += 2 * t.out_stride) run_columns<2>(t);
        if (m < g.rows) run_columns<1>(t);
        for (m = 0; m < g.rows; ++m) finish_row(to + m * g.channels, count, nullptr, e);
        continue;
      }
      const Y* w = y + at.y + first * g.terms;
      if (g.adj_x) product_dots(TransposedRows{x + at.x, g.rows, g.terms}, 0, g.rows, w, count, g.terms, to, g.channels, e, args.scratch);
      else product_dots(DenseRows{x + at.x, g.terms, g.terms}, 0, g.rows, w, count, g.terms, to, g.channels, e, args.scratch);
    }
    return;
  }
  const PanelPlan plan = plan_panels(g.rows, g.channels, g.terms, g.adj_x);
  for (int64_t row = args.rows.begin; row < args.rows.end;) {
    const int64_t b = row / g.rows, begin = row % g.rows, end = std::min(g.rows, begin + args.rows.end - row);
    const BatchMatMulNode::Matrices at = g.matrices(b);
    const EvenRows place{out + b * g.rows * g.channels, g.channels};
    const auto run = [&](const auto& source, const auto& weights) HWY_ATTR {
      product_panels(source, begin, end, weights, g.channels, g.terms, place, e, plan, args.scratch);
    };
    const auto with_weights = [&](const auto& weights) HWY_ATTR {
      if (g.adj_x) run(TransposedRows{x + at.x, g.rows, g.terms}, weights);
      else run(DenseRows{x + at.x, g.terms, g.terms}, weights);
    };
    if (g.adj_y) with_weights(ChannelWeights<Y>{y + at.y, g.terms});
    else with_weights(TermWeights<Y>{y + at.y, g.channels});
    row += end - begin;
  }
}

inline int64_t batch_matmul_float_block(const BatchMatMulNode& g) {
  return g.adj_y ? prefers_dots(g.rows, g.channels, g.terms, g.terms) ? 64 : 0 : g.rows < 8 ? 64 : 0;
}
inline int64_t batch_matmul_float_scratch(const BatchMatMulFloatParams& p) {
  const BatchMatMulNode& g = p.node;
  if (p.block > 0) return g.adj_y ? dots_scratch_bytes(g.terms, g.terms, g.adj_x) : 0;
  return panels_scratch_bytes(plan_panels(g.rows, g.channels, g.terms, g.adj_x), g.terms, g.adj_x);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class Y>
Status BatchMatMul<Y, float>::prepare(Preparation& p) {
  BatchMatMulNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_batch_matmul(p, &node));
  BatchMatMulFloatParams* params = p.make_params<BatchMatMulFloatParams>();
  if (!params) return p.no_memory();
  params->node = node;
  params->block = ONEWEIGHT_KERNEL(p.target(), batch_matmul_float_block)(node);
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), batch_matmul_float_scratch)(*params));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), batch_matmul_float<Y>),
               node.batch * (params->block > 0 ? (node.channels + params->block - 1) / params->block : node.rows));
  p.set_work(node.work(), params->block > 0 ? 0 : kPackWork * node.channels * node.terms);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
