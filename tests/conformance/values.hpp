#ifndef WEFT_TESTS_CONFORMANCE_VALUES_HPP
#define WEFT_TESTS_CONFORMANCE_VALUES_HPP
// Values of the conformance data: `{"dtype": "DT_FLOAT", "shape": [2], "values": [...]}`, and how they are compared.

#include <weft/format/attr_json.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <optional>
#include <string>

namespace conformance {

/// How the elements of string tensors are written: as text (`ops/`) or as base64 (`graph/`).
enum class string_form { text, base64 };

struct tolerance {
  double relative = 0, absolute = 0;
};

/// A field that must be there, and not be null. The record must outlive it.
weft::detail::json_at field(const weft::detail::json_at& record, std::string_view name);
/// A dtype by TensorFlow's name (`DT_FLOAT`) or numpy's (`float32`).
weft::dtype type_at(const weft::detail::json_at& at);
/// The value written here.
weft::tensor_value value_at(const weft::detail::json_at& at, string_form strings);
/// A shape with null for what is unknown.
weft::partial_shape partial_shape_at(const weft::detail::json_at& at);
/// The tolerance of a record (`"tolerance": {"rtol", "atol"}`), if it has one.
std::optional<tolerance> tolerance_at(const weft::detail::json_at& record);

/// "" when `found` is what is expected, else what differs first. Without a tolerance floats may differ as the data's description says.
std::string compare(const weft::tensor_value& expected, const weft::tensor_value& found, const std::optional<tolerance>& tol);
/// Element i as a double (real part of a complex number).
double element(const weft::tensor_value& v, std::int64_t i);
/// The same elements in storage that nobody else holds.
weft::tensor_value unshared(const weft::tensor_value& v);
/// SHA-256 of the elements' bytes, in hexadecimal.
std::string sha256(const weft::tensor_value& v);

}  // namespace conformance

#endif
