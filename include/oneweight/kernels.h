// Compiles what files with ONEWEIGHT_EXTERN_KERNELS=1 leave out. Include it in one file of the program, or
// link oneweight::kernels, whose files each include it for one group:
//   ONEWEIGHT_KERNELS_GROUP   header of the group, default: all operators
//   ONEWEIGHT_KERNELS_ROWS    its operator set, default: All
//   ONEWEIGHT_KERNELS_CORE    also the planner and target detection (default when no group is named)
#ifndef ONEWEIGHT_KERNELS_H
#define ONEWEIGHT_KERNELS_H

#undef ONEWEIGHT_EXTERN_KERNELS
#define ONEWEIGHT_EXTERN_KERNELS 1
#define ONEWEIGHT_BUILD_KERNELS
#ifndef ONEWEIGHT_KERNELS_GROUP
#define ONEWEIGHT_KERNELS_GROUP "oneweight/opset/all.h"
#define ONEWEIGHT_KERNELS_ROWS All
#define ONEWEIGHT_KERNELS_CORE
#endif
#define ONEWEIGHT_OPS ONEWEIGHT_KERNELS_GROUP
#include "oneweight/oneweight.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace detail {
// Naming the rows instantiates every prepare function, and with them the kernels.
template <class Ops> const OpRow* instantiate_rows() { return Ops::rows.data(); }
template const OpRow* instantiate_rows<opset::ONEWEIGHT_KERNELS_ROWS>();
}  // namespace detail
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_KERNELS_H
