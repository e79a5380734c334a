// Lists of operators: what is named is compiled and linked, nothing else.
#ifndef ONEWEIGHT_OPSET_OPSET_H
#define ONEWEIGHT_OPSET_OPSET_H

#include <array>
#include <span>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// OpSet<Softmax<float>, Relu<float>, ...>. Where several rows accept a node the first one is taken.
template <class... Ops>
struct OpSet {
  static constexpr std::array<OpRow, sizeof...(Ops)> rows = {Ops::row...};
};

namespace detail {
template <class... Sets> struct JoinSets;
template <class... A> struct JoinSets<OpSet<A...>> { using type = OpSet<A...>; };
template <class... A, class... B, class... Rest>
struct JoinSets<OpSet<A...>, OpSet<B...>, Rest...> : JoinSets<OpSet<A..., B...>, Rest...> {};
}  // namespace detail

// One set with the operators of several.
template <class... Sets>
using Join = typename detail::JoinSets<Sets...>::type;

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPSET_OPSET_H
