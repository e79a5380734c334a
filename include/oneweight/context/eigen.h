// Inputs and outputs of a context as Eigen maps, without a copy. The only header that needs Eigen.
#ifndef ONEWEIGHT_CONTEXT_EIGEN_H
#define ONEWEIGHT_CONTEXT_EIGEN_H

#include <Eigen/Core>

#include "oneweight/context/execution_context.h"

namespace oneweight {

template <class T>
using RowMajorMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                                                  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>>;

namespace detail {
// The last axis becomes the columns, all others together the rows.
inline std::pair<int64_t, int64_t> matrix_extents(const Shape& shape) {
  const int64_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  return {columns == 0 ? 0 : shape.elements() / columns, columns};
}
}  // namespace detail

// Input `number` as a row-major matrix [product of the other axes, last axis]. T: float, Eigen::half, int8_t ...
// Valid as long as the context's memory is not bound elsewhere. Errors: as ExecutionContext::input.
template <class T>
Expected<RowMajorMap<T>> input_matrix(ExecutionContext& context, int number) {
  Expected<std::span<T>> values = context.input<T>(number);
  if (!values.ok()) return values.status();
  const auto [rows, columns] = detail::matrix_extents(context.input_tensor(number).shape);
  return RowMajorMap<T>(values->data(), rows, columns);
}

template <class T>
Expected<RowMajorMap<const T>> output_matrix(const ExecutionContext& context, int number) {
  Expected<std::span<const T>> values = context.output<T>(number);
  if (!values.ok()) return values.status();
  const auto [rows, columns] = detail::matrix_extents(context.output_tensor(number).shape);
  return RowMajorMap<const T>(values->data(), rows, columns);
}

}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_EIGEN_H
