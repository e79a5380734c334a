// Errors are values: a code to branch on and a sentence that names operator, tensor and numbers.
#ifndef ONEWEIGHT_BASE_STATUS_H
#define ONEWEIGHT_BASE_STATUS_H

#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>
#include <variant>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

enum class ErrorCode : int {
  ok = 0,
  not_found,          // no such file, signature, tensor or index
  io_error,           // the operating system refused to read or map
  invalid_model,      // the file is damaged, truncated, foreign or contradicts itself
  unsupported,        // valid, but an operator, type or version is not built in
  invalid_argument,   // the caller's shape, type, size, name or option does not fit
  out_of_memory,      // an allocation failed, or a limit given by the caller is too small
  invalid_data,       // run time values out of range (an index past its table, a division by zero)
  cancelled,          // the cancel flag was set, or the deadline has passed
};

constexpr const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::ok: return "ok";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::io_error: return "io error";
    case ErrorCode::invalid_model: return "invalid model";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::invalid_data: return "invalid data";
    case ErrorCode::cancelled: return "cancelled";
  }
  return "unknown error";
}

// Success, or an error code with a message. Copyable; safe to keep after model and context are gone.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::ok; }
  explicit operator bool() const { return ok(); }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::ok;
  std::string message_;
};

// A value or the Status that says why there is none. value() may only be called when ok().
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Status error) : state_(std::in_place_index<1>, std::move(error)) {
    assert(!std::get_if<1>(&state_)->ok());
  }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  // By value, so that `for (float& f : *context.input<float>(0))` does not look into a temporary.
  T value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Status status() const { return ok() ? Status() : *std::get_if<1>(&state_); }

 private:
  std::variant<T, Status> state_;
};

// Formats are checked on hosted systems; on bare metal int32_t may be long, which is as wide there.
#if defined(__GNUC__) && (defined(__unix__) || defined(__APPLE__))
#define ONEWEIGHT_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define ONEWEIGHT_PRINTF(format_at, args_at)
#endif

inline std::string format_message(const char* format, std::va_list args) {
  std::va_list again;
  va_copy(again, args);
  const int n = std::vsnprintf(nullptr, 0, format, args);
  std::string text(n > 0 ? static_cast<size_t>(n) : 0, '\0');
  if (n > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

ONEWEIGHT_PRINTF(1, 2) inline std::string format_text(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_message(format, args);
  va_end(args);
  return text;
}

ONEWEIGHT_PRINTF(2, 3) inline Status make_error(ErrorCode code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  Status status(code, format_message(format, args));
  va_end(args);
  return status;
}

}  // namespace v1
}  // namespace oneweight

// Hands an error on to the caller.
#define ONEWEIGHT_RETURN_IF_ERROR(...)                          \
  do {                                                          \
    if (::oneweight::Status ow_status = (__VA_ARGS__); !ow_status.ok()) return ow_status; \
  } while (false)

#endif  // ONEWEIGHT_BASE_STATUS_H
