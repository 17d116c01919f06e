// Rows that are printed for people and for machines: the same cells as aligned text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace ptxgen::tool {

using Json = nlohmann::ordered_json;

// Pretty-printed, with a newline at the end. What is no UTF-8 (a tensor's name may be anything) is replaced.
std::string to_text(const Json& json);

// `text` on one line, safe for a terminal: control characters are replaced.
std::string printable(std::string_view text);

struct Column {
  std::string key;    // in JSON
  std::string title;  // in text; a column without one is in JSON only
};

// A value as JSON, and as text where that is not the value itself.
struct Cell {
  template <class T>
  Cell(const T& v) : value(v) {}  // NOLINT: a cell is written as its value
  Cell(Json v, std::string t) : value(std::move(v)), text(std::move(t)) {}

  std::string to_string() const;  // null: "-"

  Json value;
  std::string text;
};

// With so many digits behind the point in text, and as it is in JSON; nothing is null.
Cell rounded(const std::optional<double>& value, int digits);

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::size_t columns() const { return columns_.size(); }

  // One line a row below one of titles; numbers are aligned to the right. Each line begins with `indent`.
  std::string text(std::string_view indent = "") const;
  // One line a cell, "title   value", and an empty line between rows.
  std::string text_by_cell(std::string_view indent = "") const;
  // An array of objects.
  Json json() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace ptxgen::tool
