#ifndef WEFT_FORMAT_SAFETENSORS_HPP
#define WEFT_FORMAT_SAFETENSORS_HPP
// The safetensors format: the length of a JSON header in 8 bytes, the header, then the elements of all tensors without gaps.

#include <weft/core/config.hpp>
#include <weft/format/json_value.hpp>
#include <weft/format/json_writer.hpp>
#include <weft/format/tensor_file.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft {

/// Writes these tensors, with texts about them in `__metadata__`; those with the largest elements come first, so that all are aligned. The file takes its name when it is complete. Throws UNIMPLEMENTED
/// for dtypes that the format has not: strings, resources, complex128.
void write_safetensors(const std::string& path, const std::vector<named_tensor>& tensors, const std::map<std::string, std::string>& metadata = {});

/// An open safetensors file, all of whose header was checked. Reading a tensor reads its bytes only.
class safetensors_file final : public tensor_file {
 public:
  /// Throws NOT_FOUND, DATA_LOSS with the file and the fault, UNIMPLEMENTED for dtypes that weft has not.
  explicit safetensors_file(const std::string& path);

  /// The texts in `__metadata__`.
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  WEFT_INLINE tensor_value read(const tensor_entry& entry) const override;
  using tensor_file::read;

 private:
  void read_entry(const detail::json_at& at, std::uint64_t data, std::uint64_t data_size);
  void check_cover(std::uint64_t data, std::uint64_t data_size) const;
  file_reader file_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>

namespace weft {

namespace detail {

struct safetensors_name {
  const char* text;
  dtype type;
};
inline constexpr safetensors_name safetensors_names[] = {
    {"BOOL", dtype::boolean}, {"U8", dtype::uint8}, {"I8", dtype::int8}, {"U16", dtype::uint16}, {"I16", dtype::int16}, {"F16", dtype::half}, {"BF16", dtype::bfloat16}, {"U32", dtype::uint32},
    {"I32", dtype::int32}, {"F32", dtype::float32}, {"U64", dtype::uint64}, {"I64", dtype::int64}, {"F64", dtype::float64}, {"C64", dtype::complex64}};

// The largest header that is read, as in the format's own library.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

inline const char* safetensors_dtype(const std::string& path, const named_tensor& t) {
  for (const safetensors_name& n : safetensors_names)
    if (n.type == t.value.dtype()) return n.text;
  fail(error_code::unimplemented, "cannot write '" + path + "': safetensors has no dtype for " + std::string(to_text(t.value.dtype())) + ", which tensor '" + t.name + "' has" +
                                      (t.value.dtype() == dtype::string || t.value.dtype() == dtype::complex128 ? "; write an .npz file instead" : ""));
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

}  // namespace detail

WEFT_DECL void write_safetensors(const std::string& path, const std::vector<named_tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  detail::expect_writable(path, tensors);
  std::vector<const named_tensor*> order;
  for (const named_tensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const named_tensor* a, const named_tensor* b) {
    const std::size_t left = size_of(a->value.dtype()), right = size_of(b->value.dtype());
    return left != right ? left > right : a->name < b->name;
  });
  detail::json_writer header(0, true);
  header.begin('{');
  std::uint64_t end = 0;
  for (const named_tensor* each : order) {
    const named_tensor& t = *each;
    if (!detail::is_utf8(t.name)) fail(error_code::invalid_argument, "cannot write '" + path + "': the name of a tensor is not UTF-8");
    if (t.name == "__metadata__") fail(error_code::invalid_argument, "cannot write '" + path + "': a tensor of safetensors cannot be named '__metadata__'");
    header.key(t.name).begin('{').key("dtype").string(detail::safetensors_dtype(path, t)).key("shape").begin('[');
    for (const std::int64_t size : t.value.shape()) header.small(size);
    header.end(']').key("data_offsets").begin('[').small(static_cast<std::int64_t>(end));
    end += t.value.bytes();
    header.small(static_cast<std::int64_t>(end)).end(']').end('}');
  }
  if (!metadata.empty()) {
    header.key("__metadata__").begin('{');
    for (const auto& [key, text] : metadata) header.key(key).string(text);
    header.end('}');
  }
  std::string text = header.end('}').take();
  while (text.size() % 8 != 0) text += ' ';
  std::string length;
  detail::put_little(length, text.size(), 8);
  if (text.size() > detail::max_safetensors_header) fail(error_code::resource_exhausted, "cannot write '" + path + "': the header would be larger than safetensors allows");

  file_writer out(path);
  out.write(length);
  out.write(text);
  for (const named_tensor* t : order)
    if (t->value.bytes() > 0) out.write(t->value.raw_data(), t->value.bytes());
  out.commit();
}

WEFT_DECL safetensors_file::safetensors_file(const std::string& path) : tensor_file(path), file_(path) {
  if (file_.size() < 8) file_.damaged("not a safetensors file: it has " + std::to_string(file_.size()) + " bytes");
  const std::uint64_t length = detail::get_little(file_.text(0, 8).data(), 8);
  if (length > detail::max_safetensors_header) file_.damaged("the header claims " + std::to_string(length) + " bytes, at most " + std::to_string(detail::max_safetensors_header) + " are allowed");
  if (length > file_.size() - 8) file_.damaged("the header claims " + std::to_string(length) + " bytes, the file has " + std::to_string(file_.size() - 8) + " behind its length");
  const std::string text = file_.text(8, static_cast<std::size_t>(length));
  if (text.empty() || text[0] != '{') file_.damaged("the header does not begin with '{'");
  const std::uint64_t data = 8 + length, data_size = file_.size() - data;
  try {
    const detail::json_value header = detail::parse_json(text);
    const detail::json_at top(header);
    for (const detail::json_value& member : header.items) {
      const detail::json_at at(member, top, member.key);
      if (member.key != "__metadata__") {
        read_entry(at, data, data_size);
        continue;
      }
      if (member.kind != detail::json_kind::object) detail::bad_json(at, "expected an object");
      for (const detail::json_value& one : member.items) metadata_.emplace(one.key, detail::string_at(detail::json_at(one, at, one.key)));
    }
  } catch (const error& e) {
    if (e.code() != error_code::invalid_argument) throw;
    file_.damaged("header: " + e.message());
  }
  check_cover(data, data_size);
  index();
}

WEFT_DECL void safetensors_file::read_entry(const detail::json_at& at, std::uint64_t data, std::uint64_t data_size) {
  tensor_entry out;
  out.name = at.value.key;
  if (at.value.kind != detail::json_kind::object) detail::bad_json(at, "expected an object");
  const auto field = [&at](const char* name) {
    for (const detail::json_value& member : at.value.items)
      if (member.key == name) return detail::json_at(member, at, member.key);
    detail::bad_json(at, std::string("there is no '") + name + "'");
  };
  for (const detail::json_value& member : at.value.items)
    if (member.key != "dtype" && member.key != "shape" && member.key != "data_offsets") detail::bad_json(at, "there is no field '" + member.key.substr(0, 80) + "' here");
  const detail::json_at dtype_at = field("dtype"), shape_at = field("shape"), offsets_at = field("data_offsets");
  const std::string& type = detail::string_at(dtype_at);
  for (const detail::safetensors_name& n : detail::safetensors_names)
    if (type == n.text) out.dtype = n.type;
  if (out.dtype == dtype::invalid && type.size() > 3 && type.size() < 16 && type.compare(0, 1, "F") == 0 && type.find('_') != std::string::npos)
    fail(error_code::unimplemented, "'" + path_ + "': tensor '" + out.name.substr(0, 200) + "' has dtype " + type + ", which is not supported");
  if (out.dtype == dtype::invalid) detail::bad_json(dtype_at, "there is no dtype '" + type.substr(0, 80) + "'");

  std::vector<std::int64_t> sizes;
  for (const detail::json_value& size : detail::elements_at(shape_at)) {
    const detail::json_at one(size, shape_at, sizes.size());
    if (size.kind != detail::json_kind::integer) detail::bad_json(one, "expected an integer");
    sizes.push_back(detail::integer_at(one, 0));
  }
  out.bytes = detail::plain_bytes(file_, out.name, out.dtype, sizes.data(), sizes.size());
  out.shape = weft::shape(sizes);

  std::vector<std::uint64_t> offsets;
  for (const detail::json_value& offset : detail::elements_at(offsets_at)) {
    const detail::json_at one(offset, offsets_at, offsets.size());
    if (offset.kind != detail::json_kind::integer) detail::bad_json(one, "expected an integer");
    offsets.push_back(static_cast<std::uint64_t>(detail::integer_at(one, 0)));
  }
  if (offsets.size() != 2) detail::bad_json(offsets_at, "expected 2 numbers, found " + std::to_string(offsets.size()));
  if (offsets[0] > offsets[1] || offsets[1] > data_size)
    detail::bad_json(offsets_at, "[" + std::to_string(offsets[0]) + "," + std::to_string(offsets[1]) + "] is not within the " + std::to_string(data_size) + " bytes of data");
  if (offsets[1] - offsets[0] != out.bytes)
    detail::bad_json(offsets_at, "shape " + out.shape.text() + " of " + type + " needs " + std::to_string(out.bytes) + " bytes, found " + std::to_string(offsets[1] - offsets[0]));
  out.position = data + offsets[0];
  entries_.push_back(std::move(out));
}

// The tensors lie behind one another: no byte belongs to two of them, or to none.
WEFT_DECL void safetensors_file::check_cover(std::uint64_t data, std::uint64_t data_size) const {
  std::vector<const tensor_entry*> order;
  for (const tensor_entry& e : entries_) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const tensor_entry* a, const tensor_entry* b) { return a->position != b->position ? a->position < b->position : a->bytes < b->bytes; });
  std::uint64_t end = data;
  for (const tensor_entry* e : order) {
    if (e->position != end)
      file_.damaged("tensor '" + e->name.substr(0, 200) + "' begins at " + std::to_string(e->position - data) + " of the data, " +
                    (e->position < end ? "within the one before it, which ends at " : "behind a gap from ") + std::to_string(end - data));
    end += e->bytes;
  }
  if (end - data != data_size) file_.damaged("the tensors take " + std::to_string(end - data) + " bytes, the file has " + std::to_string(data_size) + " bytes of data");
}

WEFT_DECL tensor_value safetensors_file::read(const tensor_entry& entry) const { return detail::read_plain(file_, entry); }

}  // namespace weft
#endif

#endif
