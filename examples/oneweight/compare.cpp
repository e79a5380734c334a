#include "compare.h"

#include <cmath>
#include <complex>
#include <cstring>

namespace program {

using oneweight::format_text;
using oneweight::TensorType;

namespace {

template <class T> T load(const Array& a, int64_t i) {
  T value;
  std::memcpy(&value, a.data.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

// Wide enough for every integer of 64 bits.
using Wide = std::complex<long double>;

Wide value_of(const Array& a, int64_t i) {
  switch (a.type) {
    case TensorType::float32: return load<float>(a, i);
    case TensorType::float16: return oneweight::half_to_float(load<oneweight::half>(a, i));
    case TensorType::float64: return load<double>(a, i);
    case TensorType::int8: return load<int8_t>(a, i);
    case TensorType::uint8: return load<uint8_t>(a, i);
    case TensorType::boolean: return load<uint8_t>(a, i);
    case TensorType::int16: return load<int16_t>(a, i);
    case TensorType::uint16: return load<uint16_t>(a, i);
    case TensorType::int32: return load<int32_t>(a, i);
    case TensorType::uint32: return load<uint32_t>(a, i);
    case TensorType::int64: return load<int64_t>(a, i);
    case TensorType::uint64: return load<uint64_t>(a, i);
    case TensorType::complex64: return Wide(load<std::complex<float>>(a, i));
    case TensorType::complex128: return Wide(load<std::complex<double>>(a, i));
    default: return 0;
  }
}

std::string text_of(const Array& a, int64_t i) {
  const auto* start = reinterpret_cast<const char*>(a.data.data()) + static_cast<size_t>(i) * a.item_bytes;
  return std::string(start, strnlen(start, a.item_bytes));
}

// A NaN or an infinity is right only where it is wanted.
bool same_part(long double got, long double want, long double distance, const Tolerance& t, long double magnitude) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return distance <= t.absolute + t.relative * magnitude;
}

bool same(const Array& got, const Array& want, int64_t i, const Tolerance& t) {
  if (want.type == TensorType::string) return text_of(got, i) == text_of(want, i);
  const Wide g = value_of(got, i), w = value_of(want, i);
  const bool finite = std::isfinite(w.real()) && std::isfinite(w.imag()) && std::isfinite(g.real()) && std::isfinite(g.imag());
  const long double distance = finite ? std::abs(g - w) : 0, magnitude = finite ? std::abs(w) : 0;
  return same_part(g.real(), w.real(), distance, t, magnitude) && same_part(g.imag(), w.imag(), distance, t, magnitude);
}

std::string check_statistics(const Array& got, const Array& want, const Tolerance& t) {
  const int64_t n = want.elements();
  if (n == 0 || want.type == TensorType::string) return {};
  long double difference = 0, sum_g = 0, sum_w = 0;
  for (int64_t i = 0; i < n; ++i) {
    const long double g = value_of(got, i).real(), w = value_of(want, i).real();
    if (!std::isfinite(g) || !std::isfinite(w)) continue;  // compared one by one
    difference += std::fabs(g - w);
    sum_g += g;
    sum_w += w;
  }
  if (t.mean && difference / n > *t.mean)
    return format_text("the mean difference is %.4Lg, %.4g is allowed", difference / n, *t.mean);
  if (!t.correlation) return {};
  long double gg = 0, ww = 0, gw = 0;
  for (int64_t i = 0; i < n; ++i) {
    const long double g = value_of(got, i).real() - sum_g / n, w = value_of(want, i).real() - sum_w / n;
    gg += g * g;
    ww += w * w;
    gw += g * w;
  }
  const long double correlation = gg == 0 && ww == 0 ? 1 : gg == 0 || ww == 0 ? 0 : gw / std::sqrt(gg * ww);
  if (!(correlation >= *t.correlation))
    return format_text("the correlation is %.6Lf, %.6f is needed", correlation, *t.correlation);
  return {};
}

std::string compare_kind(const Array& got, const Array& want) {
  if (std::strcmp(numpy_name(got.type), numpy_name(want.type)) != 0)
    return format_text("has type %s, want %s", numpy_name(got.type), numpy_name(want.type));
  if (got.shape != want.shape)
    return format_text("has shape %s, want %s", got.shape_text().c_str(), want.shape_text().c_str());
  return {};
}

}  // namespace

double element_value(const Array& array, int64_t index) { return static_cast<double>(value_of(array, index).real()); }

std::string element_text(const Array& a, int64_t i) {
  switch (a.type) {
    case TensorType::string: return "\"" + text_of(a, i) + "\"";
    case TensorType::boolean: return load<uint8_t>(a, i) ? "true" : "false";
    case TensorType::float32: case TensorType::float16: return format_text("%.8g", element_value(a, i));
    case TensorType::float64: return format_text("%.17g", element_value(a, i));
    case TensorType::uint64: return std::to_string(load<uint64_t>(a, i));
    case TensorType::complex64: case TensorType::complex128: {
      const Wide value = value_of(a, i);
      return format_text("(%.8Lg%+.8Lgj)", value.real(), value.imag());
    }
    default: return std::to_string(static_cast<int64_t>(value_of(a, i).real()));
  }
}

std::string index_text(const std::vector<int64_t>& shape, int64_t index) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0; index /= shape[axis])
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

std::string compare(const Array& got, const Array& want, const Tolerance& tolerance, bool shape_only) {
  if (std::string wrong = compare_kind(got, want); !wrong.empty()) return wrong;
  if (shape_only) return {};
  const int64_t n = want.elements();
  int64_t differing = 0, first = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (same(got, want, i, tolerance)) continue;
    ++differing;
    if (first < 0) first = i;
  }
  if (differing > 0 && static_cast<double>(differing) > tolerance.differing_fraction.value_or(0) * static_cast<double>(n))
    return format_text("differs first at %s: got %s, want %s (%lld of %lld elements differ; tolerance %.4g + %.4g * |want|)",
                       index_text(want.shape, first).c_str(), element_text(got, first).c_str(), element_text(want, first).c_str(),
                       static_cast<long long>(differing), static_cast<long long>(n), tolerance.absolute, tolerance.relative);
  return check_statistics(got, want, tolerance);
}

std::string compare_detections(const std::vector<Array>& got, const std::vector<Array>& want,
                               const std::vector<Tolerance>& tolerances) {
  if (got.size() != 4 || want.size() != 4) return "the model has not the four outputs of a detector";
  for (size_t i = 0; i < 4; ++i)
    if (std::string wrong = compare_kind(got[i], want[i]); !wrong.empty()) return "output " + std::to_string(i) + " " + wrong;
  if (std::string wrong = compare(got[3], want[3], tolerances[3], false); !wrong.empty()) return "the number of detections " + wrong;
  const int64_t count = std::min<int64_t>(want[2].elements(), std::llround(want[3].elements() ? element_value(want[3], 0) : 0.0));
  std::vector<bool> used(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const auto within = [&](size_t output, int64_t g, int64_t w) {
    const double wanted = element_value(want[output], w), difference = std::fabs(element_value(got[output], g) - wanted);
    return difference <= tolerances[output].absolute + tolerances[output].relative * std::fabs(wanted);
  };
  for (int64_t w = 0; w < count; ++w) {
    bool found = false;
    for (int64_t g = 0; g < count && !found; ++g) {
      bool match = !used[static_cast<size_t>(g)] && within(1, g, w) && within(2, g, w);
      for (int64_t k = 0; k < 4; ++k) match = match && within(0, g * 4 + k, w * 4 + k);
      if (match) used[static_cast<size_t>(g)] = found = true;
    }
    if (!found)
      return format_text("detection %lld of class %s with score %s and box [%s, %s, %s, %s] is missing (in its place: class %s, score %s, box [%s, %s, %s, %s])",
                         static_cast<long long>(w), element_text(want[1], w).c_str(), element_text(want[2], w).c_str(),
                         element_text(want[0], 4 * w).c_str(), element_text(want[0], 4 * w + 1).c_str(),
                         element_text(want[0], 4 * w + 2).c_str(), element_text(want[0], 4 * w + 3).c_str(),
                         element_text(got[1], w).c_str(), element_text(got[2], w).c_str(), element_text(got[0], 4 * w).c_str(),
                         element_text(got[0], 4 * w + 1).c_str(), element_text(got[0], 4 * w + 2).c_str(),
                         element_text(got[0], 4 * w + 3).c_str());
  }
  return {};
}

}  // namespace program
