#include "tests/support/xml.h"

#include <array>
#include <utility>

namespace ptxgen::testing {
namespace {

constexpr std::string_view kSpace = " \n\t";

// `text` with its entities resolved; nothing when one is not known or a '<' is bare.
std::optional<std::string> resolved(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 4> kEntities = {
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}}};
  std::string result;
  while (!text.empty()) {
    if (text[0] == '<') return std::nullopt;
    std::string_view taken = text.substr(0, 1);
    char c = text[0];
    if (c == '&') {
      taken = {};
      for (const auto& [entity, meaning] : kEntities) {
        if (text.starts_with(entity)) taken = entity, c = meaning;
      }
      if (taken.empty()) return std::nullopt;
    }
    result += c;
    text.remove_prefix(taken.size());
  }
  return result;
}

// Takes what stands before the first of `stops` off `text`.
std::string_view take_until(std::string_view& text, std::string_view stops) {
  const std::size_t end = std::min(text.find_first_of(stops), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end);
  return taken;
}

void skip_space(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
}

// The inside of "<...>" without the brackets and a '/' at its end.
std::optional<XmlElement> parse_tag(std::string_view tag) {
  XmlElement element{std::string(take_until(tag, kSpace)), {}, {}};
  if (element.name.empty()) return std::nullopt;
  for (skip_space(tag); !tag.empty(); skip_space(tag)) {
    const std::string name(take_until(tag, "= \n\t"));
    if (name.empty() || !tag.starts_with("=\"")) return std::nullopt;
    tag.remove_prefix(2);
    const std::optional<std::string> value = resolved(take_until(tag, "\""));
    if (!value || tag.empty() || !element.attributes.emplace(name, *value).second) return std::nullopt;
    tag.remove_prefix(1);
    if (!tag.empty() && kSpace.find(tag[0]) == kSpace.npos) return std::nullopt;
  }
  return element;
}

}  // namespace

std::optional<std::vector<XmlElement>> parse_xml(std::string_view text) {
  std::vector<XmlElement> all;
  std::vector<std::size_t> open;
  while (!text.empty()) {
    const std::optional<std::string> between = resolved(take_until(text, "<"));
    if (!between) return std::nullopt;
    if (open.empty() && between->find_first_not_of(kSpace) != between->npos) return std::nullopt;
    if (!open.empty()) all[open.back()].text += *between;
    if (text.empty()) break;
    text.remove_prefix(1);
    std::string_view tag = take_until(text, ">");
    if (text.empty()) return std::nullopt;
    text.remove_prefix(1);
    if (tag.starts_with('/')) {
      if (open.empty() || all[open.back()].name != tag.substr(1)) return std::nullopt;
      open.pop_back();
      continue;
    }
    if (open.empty() && !all.empty()) return std::nullopt;  // a second root
    const bool ends = tag.ends_with('/');
    if (ends) tag.remove_suffix(1);
    std::optional<XmlElement> element = parse_tag(tag);
    if (!element) return std::nullopt;
    if (!ends) open.push_back(all.size());
    all.push_back(*std::move(element));
  }
  if (!open.empty() || all.empty()) return std::nullopt;
  return all;
}

}  // namespace ptxgen::testing
