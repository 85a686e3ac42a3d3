#ifndef WEFT_FORMAT_CSV_HPP
#define WEFT_FORMAT_CSV_HPP
// Tables as text, one row a line: fields apart by commas, in quotes where they hold commas, quotes or line ends.

#include <weft/core/config.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Whether the first row of a table names its columns.
enum class csv_header { none, first_row };

/// How a table is read.
struct csv_options {
  csv_header header = csv_header::none;
  char separator = ',';
  char quote = '"';
};

/// A table of texts, from which tensors are taken. Errors name the file, the line and the column.
class csv_table {
 public:
  /// Reads a file. Throws NOT_FOUND, INVALID_ARGUMENT for rows of different lengths and quotes that do not close. Empty lines do not count.
  static csv_table read(const std::string& path, const csv_options& options = {});
  /// The same for a text; `name` stands for the file in errors.
  static csv_table parse(std::string text, const csv_options& options = {}, std::string name = "csv");

  std::int64_t rows() const noexcept { return columns_ == 0 ? 0 : static_cast<std::int64_t>(fields_.size() / columns_); }
  int columns() const noexcept { return static_cast<int>(columns_); }
  /// The names of the columns; empty when there is no header.
  const std::vector<std::string>& names() const noexcept { return names_; }
  /// The number of the column of this name. Throws NOT_FOUND.
  int column(std::string_view name) const;
  std::string_view field(std::int64_t row, int column) const;

  /// Columns as numbers: `[rows, count]` of float, double, int32, int64 or uint8. Throws INVALID_ARGUMENT for a field that is none, or does not fit.
  tensor_value numbers(int first, int count, dtype type = dtype::float32) const;
  /// A column as numbers: `[rows]`.
  tensor_value numbers(int column, dtype type = dtype::float32) const;
  /// A column as texts: `[rows]`.
  tensor_value texts(int column) const;
  /// The different texts of a column, sorted: the classes of labels.
  std::vector<std::string> classes(int column) const;
  /// A column as the position of each text among `classes`: `[rows]` of int32. Throws INVALID_ARGUMENT for one that is not among them.
  tensor_value labels(int column, const std::vector<std::string>& classes) const;

 private:
  struct place {
    std::size_t begin, size;
    std::uint32_t line, column;
  };
  void parse_rows(const csv_options& options);
  const place& at(std::int64_t row, int column) const;
  void expect_columns(int first, int count) const;
  [[noreturn]] void bad(const place& where, const std::string& fault) const;
  std::string name_, text_;
  std::size_t columns_ = 0;
  std::vector<place> fields_;
  std::vector<std::string> names_;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <weft/format/file_access.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace weft {

WEFT_DECL csv_table csv_table::read(const std::string& path, const csv_options& options) {
  const file_reader file(path);
  return parse(file.text(0, static_cast<std::size_t>(file.size())), options, path);
}

WEFT_DECL csv_table csv_table::parse(std::string text, const csv_options& options, std::string name) {
  csv_table out;
  out.name_ = std::move(name);
  out.text_ = std::move(text);
  out.parse_rows(options);
  if (options.header == csv_header::first_row && !out.fields_.empty()) {
    for (int c = 0; c < out.columns(); ++c) out.names_.emplace_back(out.field(0, c));
    out.fields_.erase(out.fields_.begin(), out.fields_.begin() + out.columns());
  }
  return out;
}

WEFT_DECL void csv_table::bad(const place& where, const std::string& fault) const {
  fail(error_code::invalid_argument, "'" + name_ + "' line " + std::to_string(where.line) + ", column " + std::to_string(where.column) + ": " + fault);
}

// Doubled quotes become one, in place: the text only gets shorter.
WEFT_DECL void csv_table::parse_rows(const csv_options& options) {
  std::uint32_t line = 1;
  std::size_t line_begin = text_.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0, row_fields = 0;
  const std::size_t size = text_.size();
  for (std::size_t i = line_begin; i < size;) {
    if (row_fields == 0 && (text_[i] == '\n' || text_[i] == '\r')) {
      if (text_[i] == '\n') ++line;
      line_begin = ++i;
      continue;
    }
    place field{i, 0, line, static_cast<std::uint32_t>(i - line_begin + 1)};
    if (text_[i] == options.quote) {
      std::size_t to = field.begin = ++i;
      for (;; ++i) {
        if (i == size) bad(field, "the quote is not closed");
        if (text_[i] == options.quote) {
          if (i + 1 == size || text_[i + 1] != options.quote) break;
          ++i;
        }
        if (text_[i] == '\n') {
          ++line;
          line_begin = i + 1;
        }
        text_[to++] = text_[i];
      }
      field.size = to - field.begin;
      ++i;
    } else {
      while (i < size && text_[i] != options.separator && text_[i] != '\n' && !(text_[i] == '\r' && (i + 1 == size || text_[i + 1] == '\n'))) ++i;
      field.size = i - field.begin;
    }
    if (i < size && text_[i] == '\r' && (i + 1 == size || text_[i + 1] == '\n')) ++i;
    fields_.push_back(field);
    ++row_fields;
    if (i < size && text_[i] != options.separator && text_[i] != '\n') bad(field, "there is something behind the closing quote");
    const bool more = i < size && text_[i] == options.separator;
    ++i;
    if (more && i < size) continue;
    if (more) {
      fields_.push_back({size, 0, line, static_cast<std::uint32_t>(size - line_begin + 1)});
      ++row_fields;
    }
    if (columns_ == 0) columns_ = row_fields;
    if (row_fields != columns_) fail(error_code::invalid_argument, "'" + name_ + "' line " + std::to_string(line) + ": expected " + std::to_string(columns_) + " fields, found " + std::to_string(row_fields));
    row_fields = 0;
    ++line;
    line_begin = i;
  }
}

WEFT_DECL int csv_table::column(std::string_view name) const {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) fail(error_code::not_found, "'" + name_ + "' has no column '" + std::string(name) + "'");
  return static_cast<int>(at - names_.begin());
}

WEFT_DECL void csv_table::expect_columns(int first, int count) const {
  if (first < 0 || count < 0 || first > columns() - count)
    fail(error_code::invalid_argument, "'" + name_ + "' has " + std::to_string(columns()) + " columns, asked for " + std::to_string(count) + " from number " + std::to_string(first));
}

WEFT_DECL const csv_table::place& csv_table::at(std::int64_t row, int column) const { return fields_[static_cast<std::size_t>(row) * columns_ + static_cast<std::size_t>(column)]; }

WEFT_DECL std::string_view csv_table::field(std::int64_t row, int column) const {
  expect_columns(column, 1);
  if (row < 0 || row >= rows()) fail(error_code::invalid_argument, "'" + name_ + "' has " + std::to_string(rows()) + " rows, asked for number " + std::to_string(row));
  const place& p = at(row, column);
  return std::string_view(text_).substr(p.begin, p.size);
}

namespace detail {
// A text without the blanks around it and without a plus before it.
inline std::string_view bare_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}
}  // namespace detail

WEFT_DECL tensor_value csv_table::numbers(int first, int count, dtype type) const {
  expect_columns(first, count);
  const bool floating = type == dtype::float32 || type == dtype::float64;
  if (!floating && type != dtype::int32 && type != dtype::int64 && type != dtype::uint8)
    fail(error_code::unimplemented, "a table is read as float, double, int32, int64 or uint8, not as " + std::string(to_text(type)));
  tensor_value out(type, weft::shape{rows(), count});
  std::int64_t n = 0;
  for (std::int64_t r = 0; r < rows(); ++r)
    for (int c = first; c < first + count; ++c, ++n) {
      const place& p = at(r, c);
      const std::string_view text = detail::bare_number(std::string_view(text_).substr(p.begin, p.size));
      double real = 0;
      std::int64_t whole = 0;
      const auto read = floating ? std::from_chars(text.data(), text.data() + text.size(), real) : std::from_chars(text.data(), text.data() + text.size(), whole);
      if (text.empty() || read.ptr != text.data() + text.size() || (read.ec != std::errc() && read.ec != std::errc::result_out_of_range))
        bad(p, std::string(floating ? "expected a number" : "expected an integer") + ", found '" + std::string(text.substr(0, 80)) + "'");
      const bool narrow = type == dtype::int32 ? whole < INT32_MIN || whole > INT32_MAX : type == dtype::uint8 && (whole < 0 || whole > 255);
      if (read.ec != std::errc() || narrow || (type == dtype::float32 && std::isfinite(real) && std::abs(real) > static_cast<double>(std::numeric_limits<float>::max())))
        bad(p, "'" + std::string(text.substr(0, 80)) + "' does not fit " + to_text(type));
      if (type == dtype::float32) out.mutable_data<float>()[n] = static_cast<float>(real);
      else if (type == dtype::float64) out.mutable_data<double>()[n] = real;
      else if (type == dtype::int32) out.mutable_data<std::int32_t>()[n] = static_cast<std::int32_t>(whole);
      else if (type == dtype::int64) out.mutable_data<std::int64_t>()[n] = whole;
      else out.mutable_data<std::uint8_t>()[n] = static_cast<std::uint8_t>(whole);
    }
  return out;
}

WEFT_DECL tensor_value csv_table::numbers(int column, dtype type) const {
  tensor_value out = numbers(column, 1, type);
  out.reshape(weft::shape{rows()});
  return out;
}

WEFT_DECL tensor_value csv_table::texts(int column) const {
  expect_columns(column, 1);
  tensor_value out(dtype::string, weft::shape{rows()});
  for (std::int64_t r = 0; r < rows(); ++r) out.mutable_data<std::string>()[r] = std::string(field(r, column));
  return out;
}

WEFT_DECL std::vector<std::string> csv_table::classes(int column) const {
  std::vector<std::string> out;
  for (std::int64_t r = 0; r < rows(); ++r) out.emplace_back(field(r, column));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

WEFT_DECL tensor_value csv_table::labels(int column, const std::vector<std::string>& classes) const {
  expect_columns(column, 1);
  tensor_value out(dtype::int32, weft::shape{rows()});
  for (std::int64_t r = 0; r < rows(); ++r) {
    const auto found = std::find(classes.begin(), classes.end(), field(r, column));
    if (found == classes.end()) bad(at(r, column), "'" + std::string(field(r, column).substr(0, 80)) + "' is none of the " + std::to_string(classes.size()) + " classes");
    out.mutable_data<std::int32_t>()[r] = static_cast<std::int32_t>(found - classes.begin());
  }
  return out;
}

}  // namespace weft
#endif

#endif
