#include "src/runtime/sha256.h"

#include <string>

#include "tests/support/catch.h"

using ptxgen::sha256_hex;

// NIST's examples for FIPS 180-4, and lengths around the two places where padding changes (55/56 and 63/64
// bytes), computed with coreutils' sha256sum.
TEST_CASE("sha256 equals published digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 pads every length") {
  CHECK(sha256_hex(std::string(55, '\xe5')) ==
        "139daced41c2a931d35149a502be336ce7db9e33eb0ca16e3fc37fe3eac54225");
  CHECK(sha256_hex(std::string(56, '\xe5')) ==
        "76b79e96e8017034e1867ebc5fbd1d7b788ecec5079a95922d81c7014815bee4");
  CHECK(sha256_hex(std::string(63, '\xe5')) ==
        "712da51bb798922f4f0cf690aefd0d4a57fc680193878444ee56a109f739f701");
  CHECK(sha256_hex(std::string(64, '\xe5')) ==
        "6e8aae2a5c159a4296063612a530d6668cb16d9fbc16fd07489324418f81a748");
  CHECK(sha256_hex(std::string(119, '\xe5')) ==
        "63600affbdee47ddae8cff6b14a95cbacde7b38cd1c3b87ef5fa1f1d84cdc5c4");
  CHECK(sha256_hex(std::string(120, '\xe5')) ==
        "6df1ad3ac44d9158d66232af54d12233ec67d3d289166e73c910c727ca24e4be");
}
