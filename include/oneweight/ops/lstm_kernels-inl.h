// Kernels and preparation of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM, whose operands are numbered alike. Included once per target.
#if defined(ONEWEIGHT_OPS_LSTM_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_LSTM_KERNELS_INL_H
#undef ONEWEIGHT_OPS_LSTM_KERNELS_INL_H
#else
#define ONEWEIGHT_OPS_LSTM_KERNELS_INL_H
#endif

#include "oneweight/ops/lstm_float-inl.h"
#include "oneweight/ops/lstm_integer-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

template <class W>
void lstm_float_kernel(const KernelArgs& args) {
  run_lstm<W>(args, args.params<LstmParams>(), args.rows.begin, args.rows.end);
}
inline void lstm_integer_kernel(const KernelArgs& args) {
  const auto& q = args.params<LstmIntegerParams>();
  if (q.peephole_runs_on) run_integer_lstm(args, q, 0, q.node.batch);
  else run_integer_lstm(args, q, args.rows.begin, args.rows.end);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct LstmOptions {
  Activation activation = Activation::tanh;
  float cell_clip = 0, projection_clip = 0;
  bool sequence = false, time_major = false, asymmetric = false;
};

template <class W, class A>
Status prepare_lstm(Preparation& p, const LstmOptions& options) {
  if (p.input_count() != 20 && p.input_count() != 24) return p.invalid("has %d inputs, not 20 or 24", p.input_count());
  if (p.output_count() != 1) return p.invalid("has %d outputs, not 1", p.output_count());
  const auto state = [&](LstmParams* l) {
    number_lstm_inputs(p, l);
    l->activation = options.activation, l->asymmetric = options.asymmetric;
    l->cell_clip = options.cell_clip, l->projection_clip = options.projection_clip;
  };
  if constexpr (sizeof(A) == 1) {
    LstmIntegerParams* q = p.make_params<LstmIntegerParams>();
    if (!q) return p.no_memory();
    state(&q->node);
    ONEWEIGHT_RETURN_IF_ERROR(read_integer_lstm(p, options.sequence, options.time_major, q));
    ONEWEIGHT_RETURN_IF_ERROR(check_lstm_size(p, q->node));
    p.set_scratch(lstm_scratch(q->node, q->node.batch, 2, true).bytes);
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), lstm_integer_kernel), q->peephole_runs_on ? 1 : q->node.batch);
  } else {
    LstmParams* l = p.make_params<LstmParams>();
    if (!l) return p.no_memory();
    state(l);
    const LstmTypes& types = sizeof(W) == 1 ? kLstmHybrid : sizeof(W) == 2 ? kLstmHalf : kLstmFloat;
    ONEWEIGHT_RETURN_IF_ERROR(read_lstm_input(p, types, options.sequence, options.time_major, l));
    ONEWEIGHT_RETURN_IF_ERROR(check_lstm_size(p, *l));
    p.set_scratch(lstm_scratch(*l, l->batch, 4, sizeof(W) == 1).bytes);
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), lstm_float_kernel<W>), l->batch);
  }
  p.set_not_foldable();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif
