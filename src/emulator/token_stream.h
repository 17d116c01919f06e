// A position in the tokens of a module, and what every part of the parser does with it.
#pragma once

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "src/emulator/lexer.h"
#include "src/emulator/module.h"
#include "src/emulator/text.h"

#define RETURN_IF_ERROR(expression) \
  if (absl::Status status_ = (expression); !status_.ok()) return status_

namespace ptxgen::emulator {

// The whole of `text` as a decimal number.
template <class T>
bool parse_decimal(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

class TokenStream {
 public:
  TokenStream(Module& module, std::vector<Token> tokens) : module_(module), tokens_(std::move(tokens)) {}

 protected:
  using Kind = Token::Kind;

  const Token& token(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }

  absl::Status error(std::string_view what) const { return parse_error(module_, token().line, what); }
  absl::Status expected(std::string_view what) const {
    return error(token().kind == Kind::kEnd ? str_cat("the text ends where ", what, " is expected")
                                            : str_cat("'", token().text, "' where ", what, " is expected"));
  }

  bool accept(char symbol) {
    if (!token().is(symbol)) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (!token().is(word)) return false;
    ++at_;
    return true;
  }
  absl::Status expect(char symbol) {
    return accept(symbol) ? absl::OkStatus() : expected(str_cat("'", std::string_view(&symbol, 1), "'"));
  }
  absl::Status expect_integer(std::uint64_t& value, std::string_view what) {
    if (token().kind != Kind::kInteger) return expected(what);
    value = tokens_[at_++].bits;
    return absl::OkStatus();
  }
  absl::Status expect_name(std::string_view& name, std::string_view what) {
    if (token().kind != Kind::kName) return expected(what);
    name = tokens_[at_++].text;
    return absl::OkStatus();
  }

  Module& module_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace ptxgen::emulator
