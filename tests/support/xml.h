// Reads just enough XML to see that a text is well formed and what is in it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::testing {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // directly inside
};

// The elements in the order in which they begin; nothing when the text is not well formed: a tag without its
// end, an attribute without quotes or given twice, a bare '&' or '<', anything outside one root element.
std::optional<std::vector<XmlElement>> parse_xml(std::string_view text);

}  // namespace ptxgen::testing
