#include "tests/support/xml.h"

#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

TEST_CASE("the reader of XML tells elements, attributes and text", "[support]") {
  const auto elements = parse_xml("<a x=\"1\" y=\"&lt;2\">\n<b/>so &amp; so<c z=\"\">t</c></a>\n");
  REQUIRE(elements);
  REQUIRE(elements->size() == 3);
  CHECK((*elements)[0].name == "a");
  CHECK((*elements)[0].attributes == std::map<std::string, std::string>{{"x", "1"}, {"y", "<2"}});
  CHECK((*elements)[0].text == "\nso & so");
  CHECK((*elements)[1].name == "b");
  CHECK((*elements)[2].text == "t");
}

TEST_CASE("the reader of XML refuses what is not well formed", "[support]") {
  for (const char* text : {"",
                           "text",
                           "<a>",
                           "</a>",
                           "<a></b>",
                           "<a><b></a></b>",
                           "<a/><b/>",
                           "<a/>x",
                           "<a x=1/>",
                           "<a x/>",
                           "<a x=\"1\" x=\"2\"/>",
                           "<a x=\"1\"y=\"2\"/>",
                           "<a x=\"1/>",
                           "<a>&</a>",
                           "<a>&nbsp;</a>",
                           "<a x=\"&\"/>",
                           "<a x=\"<\"/>",
                           "< a/>",
                           "<a",
                           "<a>b < c</a>"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_xml(text));
  }
}

}  // namespace
}  // namespace ptxgen::testing
