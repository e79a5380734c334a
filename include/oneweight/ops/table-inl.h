// Functions of bytes by tables. Included once per target.
#if defined(ONEWEIGHT_OPS_TABLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_TABLE_INL_H
#undef ONEWEIGHT_OPS_TABLE_INL_H
#else
#define ONEWEIGHT_OPS_TABLE_INL_H
#endif

#include "oneweight/ops/elementwise.h"
#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[i] = table[in[i]] for i < count; in == out is allowed.
HWY_INLINE void look_up_bytes(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  int64_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  // The table in four registers; two of them are one instruction's.
  const hn::CappedTag<uint8_t, 64> d;
  const hn::RebindToSigned<decltype(d)> ds;
  if (count >= 256 && hn::Lanes(d) == 64) {
    const auto t0 = hn::LoadU(d, table), t1 = hn::LoadU(d, table + 64), t2 = hn::LoadU(d, table + 128), t3 = hn::LoadU(d, table + 192);
    const auto seven_bits = hn::Set(d, 127);
    for (; i + 64 <= count; i += 64) {
      const auto v = hn::LoadU(d, in + i);
      const auto index = hn::IndicesFromVec(d, hn::And(v, seven_bits));
      const auto lower = hn::TwoTablesLookupLanes(d, t0, t1, index), upper = hn::TwoTablesLookupLanes(d, t2, t3, index);
      hn::StoreU(hn::BitCast(d, hn::IfNegativeThenElse(hn::BitCast(ds, v), hn::BitCast(ds, upper), hn::BitCast(ds, lower))), d, out + i);
    }
  }
#endif
  for (; i < count; ++i) out[i] = table[in[i]];
}

// Kernel of TableParams.
inline void table_kernel(const KernelArgs& args) {
  const auto& p = args.params<TableParams>();
  const int64_t begin = p.elements.begin(args.rows), end = p.elements.end(args.rows);
  look_up_bytes(p.table, args.in<uint8_t>(0) + begin, args.out<uint8_t>(0) + begin, end - begin);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_OPS_TABLE_INL_H
