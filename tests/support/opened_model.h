// Models made by tests, opened.
#ifndef ONEWEIGHT_TESTS_SUPPORT_OPENED_MODEL_H
#define ONEWEIGHT_TESTS_SUPPORT_OPENED_MODEL_H

#include <catch2/catch_test_macros.hpp>
#include <memory>

#include "oneweight/model/model_view.h"
#include "tests/support/model_builder.h"

namespace oneweight::testing {

// The view keeps the bytes alive.
inline std::shared_ptr<const ModelView> opened(FileBytes file) {
  const auto owner = std::make_shared<FileBytes>(std::move(file));
  auto model = ModelView::from_bytes(*owner, owner);
  INFO(model.status().message());
  REQUIRE(model.ok());
  return *model;
}
inline std::shared_ptr<const ModelView> opened(const ModelBuilder& m) { return opened(m.build()); }

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_OPENED_MODEL_H
