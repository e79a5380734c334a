// BATCH_MATMUL on int8 (to int8 or, without zero points and scales, to the int32 sums) and int16, and hybrid: float times int8,
// the rows of x quantised while running. Shapes as in batch_matmul.h; either operand may be constant.
// Integer answers are those of TFLite's reference kernels, bit by bit: int32 sums (int64 for int16), scaled with two
// roundings. Hybrid: one scale, or one for each column of y.
// Derived: at most 8 bytes a column. Scratch: 256 KiB of y, transposed (none with adj_y), its panels, tiles of x.
// Rows: batch * M; where M is small, batch * blocks of 64 columns.
#ifndef ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_H
#define ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_H

#include "oneweight/ops/batch_matmul_node.h"
#include "oneweight/ops/quantized_weights.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class Y, class X> struct BatchMatMul;

struct QuantizedBatchMatMulParams {
  BatchMatMulNode node;
  int64_t block = 0;             // output channels of a unit of work; 0: a unit is a row
  int64_t part = 0;              // output channels whose weights are in scratch together
  int64_t chunk = 0;             // hybrid: rows quantised together
  int32_t x_zero = 0, y_zero = 0;
  QuantizedScaling scaling;
  const float* scales = nullptr;  // hybrid: of the channels
};

namespace detail {
Status prepare_quantized_batch_matmul(Preparation& p);
inline bool takes_batch_matmul(const NodeTypes& t, TensorType x, TensorType y, TensorType out) {
  return t.input_count == 2 && t.in(0, x) && t.in(1, y) && t.out(0, out);
}
inline bool takes_int8_matmul(const NodeTypes& t) {
  constexpr TensorType i8 = TensorType::int8;
  return takes_batch_matmul(t, i8, i8, i8) || takes_batch_matmul(t, i8, i8, TensorType::int32);
}
inline bool takes_int16_matmul(const NodeTypes& t) {
  return takes_batch_matmul(t, TensorType::int16, TensorType::int16, TensorType::int16);
}
inline bool takes_hybrid_matmul(const NodeTypes& t) {
  return takes_batch_matmul(t, TensorType::float32, TensorType::int8, TensorType::float32);
}
constexpr OpRow batch_matmul_row(const char* types, bool (*accepts)(const NodeTypes&)) {
  return {.code = BuiltinOperator::batch_matmul, .types = types, .accepts = accepts, .prepare = &prepare_quantized_batch_matmul};
}
}  // namespace detail

template <> struct BatchMatMul<int8_t, int8_t> { static constexpr OpRow row = detail::batch_matmul_row("int8", &detail::takes_int8_matmul); };
template <> struct BatchMatMul<int16_t, int16_t> { static constexpr OpRow row = detail::batch_matmul_row("int16", &detail::takes_int16_matmul); };
template <> struct BatchMatMul<int8_t, float> {
  static constexpr OpRow row = detail::batch_matmul_row("float, int8 second operand", &detail::takes_hybrid_matmul);
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_KERNELS
#undef ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_KERNELS
#else
#define ONEWEIGHT_OPS_QUANTIZED_BATCH_MATMUL_KERNELS
#endif

#include "oneweight/simd/product_int8-inl.h"
#include "oneweight/simd/quantize-inl.h"
#include "oneweight/simd/targets.h"
#include "oneweight/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// A source for product_bytes: rows of bytes whose terms follow one another, or lie `term_step` apart.
struct MatrixRows {
  const uint8_t* base;
  int64_t row_step, term_step, terms;
  uint8_t flip;

  TileLayout layout() const { return separate_rows(terms); }
  int64_t rows_together(int64_t) const { return int64_t{1} << 40; }
  void gather_rows(int64_t row, int rows, TileTerm* to, int64_t stride) const {
    const uint8_t* from = base + row * row_step;
    if (term_step == 1) {
      for (int r = 0; r < rows; ++r) copy_terms(from + r * row_step, terms, flip, to + r * stride);
      return;
    }
    for (int64_t k = 0; k < terms; ++k, from += term_step, ++to)
      for (int r = 0; r < rows; ++r) to[r * stride] = static_cast<TileTerm>(from[r] ^ flip);
  }
  void gather(int64_t row, int rows, TileTerm* to) const { gather_rows(row, rows, to, layout().row); }
};

// Rows of float, quantised while they are gathered; row 0 is the first of a chunk.
struct FloatRows {
  const float* base;
  int64_t terms;
  const ByteScale* scales;

  TileLayout layout() const { return separate_rows(terms); }
  int64_t rows_together(int64_t) const { return int64_t{1} << 40; }
  void gather_rows(int64_t row, int rows, TileTerm* to, int64_t stride) const {
    for (int r = 0; r < rows; ++r) quantize_bytes(base + (row + r) * terms, terms, scales[row + r], to + r * stride);
  }
  void gather(int64_t row, int rows, TileTerm* to) const { gather_rows(row, rows, to, layout().row); }
};

// The sums themselves.
struct SumStore {
  int32_t* out;
  int64_t stride;
  bool needs_row_sums() const { return false; }
  void store(const int32_t* sums, int64_t sums_stride, int rows, const int32_t*, int64_t m, int64_t n, int64_t count) const {
    for (int r = 0; r < rows; ++r) std::memcpy(out + (m + r) * stride + n, sums + r * sums_stride, static_cast<size_t>(count) * 4);
  }
};

// Calls body(matrices, b, first row, last row, first channel, channels) for the parts of the units that args ask for.
template <class Body>
HWY_INLINE void for_each_matrix(const KernelArgs& args, const BatchMatMulNode& g, int64_t block, const Body& body) {
  const int64_t blocks = block > 0 ? (g.channels + block - 1) / block : 0;
  for (int64_t unit = args.rows.begin; unit < args.rows.end;) {
    if (block > 0) {
      const int64_t b = unit / blocks, first = unit % blocks * block;
      body(g.matrices(b), b, int64_t{0}, g.rows, first, std::min(block, g.channels - first));
      ++unit;
    } else {
      const int64_t b = unit / g.rows, begin = unit % g.rows, end = std::min(g.rows, begin + args.rows.end - unit);
      body(g.matrices(b), b, begin, end, int64_t{0}, g.channels);
      unit += end - begin;
    }
  }
}

// Channels [n, n + count) of y with their terms together: in place, or transposed into `scratch`.
template <class T>
HWY_INLINE const T* channel_terms(const BatchMatMulNode& g, const T* y, int64_t n, int64_t count, T* scratch) {
  if (g.adj_y) return y + n * g.terms;
  transpose(y + n, g.channels, g.terms, count, scratch, g.terms);
  return scratch;
}

// Out: int8_t or int32_t.
template <class Out>
void batch_matmul_int8(const KernelArgs& args) {
  const QuantizedBatchMatMulParams& p = args.params<QuantizedBatchMatMulParams>();
  const BatchMatMulNode& g = p.node;
  ScratchParts parts{args.scratch};
  int32_t* const bias = parts.take<int32_t>(p.part + kChannelPad);
  uint8_t* const transposed = parts.take<uint8_t>(g.adj_y ? 0 : p.part * g.terms);
  for_each_matrix(args, g, p.block, [&](BatchMatMulNode::Matrices at, int64_t b, int64_t begin, int64_t end, int64_t first, int64_t channels) HWY_ATTR {
    const MatrixRows source{args.in<uint8_t>(0) + at.x, g.x_row(), g.x_term(), g.terms, 0x80};
    for (int64_t n = first; n < first + channels; n += p.part) {
      const int64_t count = std::min(p.part, first + channels - n);
      const ByteWeights w{channel_terms(g, args.in<uint8_t>(1) + at.y, n, count, transposed), g.terms, 8, 0};
      weight_sums(w, count, bias);
      for (int64_t i = 0; i < count; ++i) bias[i] = folded_bias(0, bias[i], g.terms, p.x_zero, p.y_zero);
      for (int64_t i = count; i < count + kChannelPad; ++i) bias[i] = 0;
      Out* const to = args.out<Out>(0) + b * g.rows * g.channels + n;
      if constexpr (sizeof(Out) == 4) product_bytes(source, g.rows, begin, end, w, 0, count, bias, SumStore{to, g.channels}, parts.next);
      else product_bytes(source, g.rows, begin, end, w, 0, count, bias, QuantizedStore<Out>{p.scaling, to, g.channels}, parts.next);
    }
  });
}

inline void batch_matmul_hybrid(const KernelArgs& args) {
  const QuantizedBatchMatMulParams& p = args.params<QuantizedBatchMatMulParams>();
  const BatchMatMulNode& g = p.node;
  ScratchParts parts{args.scratch};
  int32_t* const sums = parts.take<int32_t>(p.part + kChannelPad);
  int32_t* const nothing = parts.take<int32_t>(p.part + kChannelPad);
  ByteScale* const found = parts.take<ByteScale>(p.chunk);
  float* const scales = parts.take<float>(p.chunk);
  int32_t* const zeros = parts.take<int32_t>(p.chunk);
  float* const gathered = parts.take<float>(g.adj_x ? p.chunk * g.terms : 0);
  uint8_t* const transposed = parts.take<uint8_t>(g.adj_y ? 0 : p.part * g.terms);
  std::memset(nothing, 0, static_cast<size_t>(p.part + kChannelPad) * 4);
  for_each_matrix(args, g, p.block, [&](BatchMatMulNode::Matrices at, int64_t b, int64_t begin, int64_t end, int64_t first, int64_t channels) HWY_ATTR {
    for (int64_t n = first; n < first + channels; n += p.part) {
      const int64_t count = std::min(p.part, first + channels - n);
      const ByteWeights w{channel_terms(g, args.in<uint8_t>(1) + at.y, n, count, transposed), g.terms, 8, 0};
      weight_sums(w, count, sums);
      for (int64_t i = count; i < count + kChannelPad; ++i) sums[i] = 0;
      for (int64_t m = begin; m < end; m += p.chunk) {
        const int64_t rows = std::min(p.chunk, end - m);
        const float* x = args.in<float>(0) + at.x + m * g.x_row();
        if (g.adj_x) {
          for (int64_t k = 0; k < g.terms; ++k)
            for (int64_t r = 0; r < rows; ++r) gathered[r * g.terms + k] = x[k * g.rows + r];
          x = gathered;
        }
        for (int64_t r = 0; r < rows; ++r) {
          found[r] = find_byte_scale(x + r * g.terms, g.terms, g.asymmetric);
          scales[r] = found[r].scale, zeros[r] = found[r].zero;
        }
        const FloatStore store{scales, zeros, 1, p.scales + n, sums, nullptr, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(),
                               args.out<float>(0) + (b * g.rows + m) * g.channels + n, g.channels};
        product_bytes(FloatRows{x, g.terms, found}, g.rows, 0, rows, w, 0, count, nothing, store, parts.next);
      }
    }
  });
}

// sum of a[k] * b[k], exact.
HWY_NOINLINE inline int64_t int16_dot(const int16_t* HWY_RESTRICT a, const int16_t* HWY_RESTRICT b, int64_t n) {
  int64_t sum = 0, k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<int32_t, 16> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const hn::RepartitionToWide<decltype(d)> d64;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d64), odd = even;
  for (; k + lanes <= n; k += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(d16, a + k)), y = hn::PromoteTo(d, hn::LoadU(d16, b + k));
    even = hn::Add(even, hn::MulEven(x, y)), odd = hn::Add(odd, hn::MulOdd(x, y));
  }
  sum = hn::ReduceSum(d64, hn::Add(even, odd));
#endif
  for (; k < n; ++k) sum += int32_t{a[k]} * b[k];
  return sum;
}

inline void batch_matmul_int16(const KernelArgs& args) {
  const QuantizedBatchMatMulParams& p = args.params<QuantizedBatchMatMulParams>();
  const BatchMatMulNode& g = p.node;
  int16_t* const row = reinterpret_cast<int16_t*>(args.scratch);
  int16_t* const transposed = row + (g.adj_x ? g.terms : 0);
  const FixedMultiplier f{p.scaling.multiplier[0], p.scaling.shift[0]};
  for_each_matrix(args, g, p.block, [&](BatchMatMulNode::Matrices at, int64_t b, int64_t begin, int64_t end, int64_t first, int64_t channels) HWY_ATTR {
    for (int64_t n = first; n < first + channels; n += p.part) {
      const int64_t count = std::min(p.part, first + channels - n);
      const int16_t* w = channel_terms(g, args.in<int16_t>(1) + at.y, n, count, transposed);
      for (int64_t m = begin; m < end; ++m) {
        const int16_t* x = args.in<int16_t>(0) + at.x + m * g.x_row();
        if (g.adj_x) {
          for (int64_t k = 0; k < g.terms; ++k) row[k] = x[k * g.rows];
          x = row;
        }
        int16_t* to = args.out<int16_t>(0) + (b * g.rows + m) * g.channels + n;
        for (int64_t i = 0; i < count; ++i)
          to[i] = static_cast<int16_t>(std::clamp<int64_t>(multiply_by_quantized_multiplier(int16_dot(x, w + i * g.terms, g.terms), f), p.scaling.low, p.scaling.high));
      }
    }
  });
}

inline int64_t quantized_batch_matmul_scratch(const QuantizedBatchMatMulParams& p, TensorType type) {
  const BatchMatMulNode& g = p.node;
  const int64_t transposed = g.adj_y ? 0 : p.part * g.terms;
  if (type == TensorType::int16) return 2 * (transposed + (g.adj_x ? g.terms : 0));
  int64_t bytes = byte_product_scratch(g.rows, p.part, separate_rows(g.terms), 8) + (p.part + kChannelPad) * 4 + transposed + 2 * 64;
  if (type == TensorType::float32)
    bytes += (p.part + kChannelPad) * 4 + p.chunk * (static_cast<int64_t>(sizeof(ByteScale)) + 8 + (g.adj_x ? g.terms * 4 : 0)) + 7 * 64;
  return bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace detail {

inline Status prepare_quantized_batch_matmul(Preparation& p) {
  BatchMatMulNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_batch_matmul(p, &node));
  QuantizedBatchMatMulParams* params = p.make_params<QuantizedBatchMatMulParams>();
  if (!params) return p.no_memory();
  const Operand &x = p.input(0), &y = p.input(1), &out = p.output(0);
  params->node = node;
  constexpr int64_t kBlock = 64, kBytes = 256 << 10;
  params->block = node.rows < 8 ? kBlock : 0;
  // Channels together: all of them where they lie, else what fits, in whole panels.
  const int64_t all = params->block > 0 ? kBlock : std::max<int64_t>(node.channels, 1);
  const int64_t fits = std::max<int64_t>(kBytes / (tensor_type_bits(y.type) / 8) / (node.terms + 1) / 32 * 32, 32);
  params->part = node.adj_y ? all : std::min(all, fits);
  const bool hybrid = x.type == TensorType::float32;
  KernelFn kernel = nullptr;
  if (hybrid) {
    const int axis = y.shape.rank() - (node.adj_y ? 2 : 1);
    ONEWEIGHT_RETURN_IF_ERROR(check_weight_scales(p, y, node.channels, axis));
    if (y.zero_point() != 0) return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(y).c_str(), y.zero_point());
    float* scales = p.derived<float>(node.channels + kChannelPad);
    if (!scales) return p.no_memory();
    const std::vector<float>& given = y.quantization->scales;
    for (int64_t n = 0; n < node.channels; ++n) scales[n] = given[given.size() > 1 ? static_cast<size_t>(n) : 0];
    params->scales = scales;
    params->chunk = std::clamp<int64_t>((int64_t{64} << 10) / (node.terms + 1), 16, 256);
    kernel = ONEWEIGHT_KERNEL(p.target(), batch_matmul_hybrid);
  } else if (out.type == TensorType::int32) {
    params->x_zero = 128;
    kernel = ONEWEIGHT_KERNEL(p.target(), batch_matmul_int8<int32_t>);
  } else {
    for (const Operand* t : {&x, &y, &out}) ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, *t));
    const FixedMultiplier f = quantize_multiplier(static_cast<double>(x.scale() * y.scale()) / static_cast<double>(out.scale()));  // in float, as the reference kernel
    const bool wide = x.type == TensorType::int16;
    QuantizedScaling& q = params->scaling;
    const int64_t copies = wide ? 1 : params->part + kChannelPad;
    int32_t *multiplier = p.derived<int32_t>(copies), *shift = p.derived<int32_t>(copies);
    if (!multiplier || !shift) return p.no_memory();
    for (int64_t n = 0; n < copies; ++n) multiplier[n] = f.multiplier, shift[n] = f.shift;
    q.multiplier = multiplier, q.shift = shift;
    q.zero = out.zero_point();
    q.low = wide ? -32768 : -128, q.high = wide ? 32767 : 127;
    if (wide) {
      for (const Operand* t : {&x, &y, &out})
        if (t->zero_point() != 0) return p.invalid("%s has zero point %d, not 0", p.describe(*t).c_str(), t->zero_point());
      kernel = ONEWEIGHT_KERNEL(p.target(), batch_matmul_int16);
    } else {
      params->x_zero = x.zero_point() + 128;
      params->y_zero = q.weight_zero = y.zero_point();
      q.narrow = f.shift <= 0 && node.terms < 8192;
      kernel = ONEWEIGHT_KERNEL(p.target(), batch_matmul_int8<int8_t>);
    }
  }
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), quantized_batch_matmul_scratch)(*params, x.type));
  p.set_kernel(kernel, node.batch * (params->block > 0 ? (node.channels + params->block - 1) / params->block : node.rows));
  p.set_work(node.work(), params->block > 0 ? 0 : kPackWork * node.channels * node.terms);
  return {};
}

}  // namespace detail
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
