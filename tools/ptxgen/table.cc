#include "tools/ptxgen/table.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace ptxgen::tool {
namespace {

// Code points, which are columns of a terminal for the names that occur here.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void append_padded(std::string& line, std::string_view text, std::size_t to, bool right) {
  const std::string padding(to - std::min(to, width(text)), ' ');
  line.append(right ? padding : "").append(text).append(right ? "" : padding);
}

void append_line(std::string& text, std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text.append(line).append("\n");
  line.clear();
}

}  // namespace

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '\n') {
      if (!line.empty()) line += " | ";
    } else {
      line += control ? '?' : c;
    }
  }
  while (line.ends_with(" | ")) line.resize(line.size() - 3);
  return line;
}

std::string Cell::to_string() const {
  if (!text.empty()) return printable(text);
  if (value.is_null()) return "-";
  return value.is_string() ? printable(value.get_ref<const std::string&>()) : value.dump();
}

Cell rounded(const std::optional<double>& value, int digits) {
  if (!value) return Json();
  return {Json(*value), absl::StrFormat("%.*f", digits, *value)};
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width(row[c].to_string()));
    right.push_back(!rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) {
      return row[c].value.is_number() || row[c].value.is_null();
    }));
  }
  std::string all, line;
  const auto print = [&](const auto& cell_of) {
    line = indent;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].title.empty()) continue;
      if (line.size() > indent.size()) line += "  ";
      append_padded(line, cell_of(c), widths[c], right[c]);
    }
    append_line(all, line);
  };
  print([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) print([&](std::size_t c) { return row[c].to_string(); });
  return all;
}

std::string Table::text_by_cell(std::string_view indent) const {
  std::size_t titles = 0;
  for (const Column& column : columns_) titles = std::max(titles, width(column.title));
  std::string all, line;
  for (const auto& row : rows_) {
    if (&row != rows_.data()) all += "\n";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].title.empty()) continue;
      line = indent;
      append_padded(line, columns_[c].title, titles + 2, false);
      line += row[c].to_string();
      append_line(all, line);
    }
  }
  return all;
}

Json Table::json() const {
  Json array = Json::array();
  for (const auto& row : rows_) {
    Json& object = array.emplace_back(Json::object());
    for (std::size_t c = 0; c < columns_.size(); ++c) object[columns_[c].key] = row[c].value;
  }
  return array;
}

}  // namespace ptxgen::tool
