// The kernel shared by operators whose output holds the bytes of input 0 (RESHAPE, SQUEEZE, EXPAND_DIMS ...).
#ifndef ONEWEIGHT_OPS_COPY_H
#define ONEWEIGHT_OPS_COPY_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct CopyParams {
  int64_t bytes = 0;
};

#if ONEWEIGHT_HAS_KERNELS
inline void copy_kernel(const KernelArgs& args) {
  const auto bytes = static_cast<size_t>(args.params<CopyParams>().bytes);
  if (bytes > 0 && args.in<std::byte>(0) != args.out<std::byte>(0)) std::memcpy(args.out<std::byte>(0), args.in<std::byte>(0), bytes);
}

// Output 0 is input 0 under another shape, which must be set: a view where the plan can, else a copy.
inline Status prepare_copy(Preparation& p) {
  CopyParams* params = p.make_params<CopyParams>();
  if (!params) return p.no_memory();
  params->bytes = p.output(0).shape.bytes(p.output(0).type);
  p.allow_alias(0);
  p.set_kernel(&copy_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_COPY_H
