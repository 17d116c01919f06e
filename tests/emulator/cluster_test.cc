// Clusters of CTAs: who they are, what they reach of each other's shared memory, barrier.cluster, remote
// mbarriers, copies between CTAs; and what the emulator says of code that comes too early, too late or to
// nobody.
#include <numeric>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint32_t kThreads = 64;
constexpr std::uint32_t kMost = 16 * kThreads;

// Thread t of 64: %t, %rank of its CTA, its word of the CTA's tile at %s and the same of the next CTA at %n
// (shared::cluster), its place %out in out[64 cta + t]; in[i] is 100 + i, %in is its beginning; bars are four
// mbarriers. %p0 is t == 0.
std::string text_of(std::string_view body, std::string_view directives = ".reqnctapercluster 2") {
  return module_of(str_cat(R"(
.visible .entry k(.param .u64 in_param, .param .u64 out_param) )",
                           directives, R"( {
  .reg .pred %p<10>; .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .b64 %in; .reg .b64 %out; .reg .b32 %t; .reg .b32 %s;
  .reg .b32 %n; .reg .b32 %rank; .reg .b32 %next; .reg .b16 %h<4>;
  .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bars[4];
  ld.param.u64 %in, [in_param]; ld.param.u64 %out, [out_param];
  mov.u32 %t, %tid.x; mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, 64, %t; mad.wide.u32 %out, %r0, 4, %out;
  mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; setp.eq.u32 %p0, %t, 0;
  mov.u32 %rank, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank; add.u32 %next, %rank, 1; rem.u32 %next, %next, %r1;
  mapa.shared::cluster.u32 %n, %s, %next;
)",
                           body, "\n}\n"));
}

struct Outcome {
  std::string message;  // "ok" or the fault
  std::vector<std::uint32_t> out;
};

Outcome outcome(const std::string& ptx, const LaunchConfig& shape, std::uint64_t seed) {
  INFO(ptx);
  Memory memory;
  std::vector<std::uint32_t> in(kMost);
  std::iota(in.begin(), in.end(), 100u);
  const std::uint64_t from = upload(memory, in, "in");
  const std::uint64_t to = upload(memory, std::vector<std::uint32_t>(kMost, 0xdeadbeef), "out");
  const auto params = params_of(from, to);
  Options options;
  options.seed = seed;
  options.workers = 1;
  LaunchConfig config = shape;
  config.params = params;
  const auto stats = launch(*parsed(ptx), "k", config, memory, options);
  return {stats.ok() ? "ok" : std::string(stats.status().message()),
          download<std::uint32_t>(memory, to, kMost)};
}

LaunchConfig shape_of(std::uint32_t ctas, std::uint32_t cluster = 1) {
  LaunchConfig config;
  config.grid = {ctas};
  config.block = {kThreads};
  config.cluster = {cluster};
  return config;
}

// The message of a cluster of two CTAs.
std::string says(std::string_view body, std::uint64_t seed = 0) {
  return outcome(text_of(body), shape_of(2), seed).message;
}

// Passes in every order; thread t of CTA c leaves in out what `expected` says.
template <class F>
void check_passes(std::string_view body, std::uint32_t ctas, std::uint32_t cluster, F&& expected) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Outcome o = outcome(text_of(body, ""), shape_of(ctas, cluster), seed);
    INFO("seed " << seed << ", clusters of " << cluster << "\n" << body);
    CHECK(o.message == "ok");
    for (std::uint32_t i = 0; i < ctas * kThreads && o.message == "ok"; ++i) {
      REQUIRE(o.out[i] == expected(i / kThreads, i % kThreads));
    }
  }
}

// Fails in every order with this message.
void check_fails(std::string_view body, std::string_view message, std::string_view other = "?") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::string said = says(body, seed);
    INFO("seed " << seed << ": " << said << "\n" << body);
    CHECK((said.find(message) != std::string::npos || said.find(other) != std::string::npos));
  }
}

constexpr char kMeet[] = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
// tile[t] = 1000 rank + t
constexpr char kFill[] = "mad.lo.u32 %r2, %rank, 1000, %t; st.shared.u32 [%s], %r2;\n";
constexpr char kKeep[] = "st.global.u32 [%out], %r3;\n";

std::uint32_t next_of(std::uint32_t cta, std::uint32_t cluster) {
  return cta / cluster * cluster + (cta + 1) % cluster;
}

}  // namespace

TEST_CASE("a CTA knows its place in the cluster and the cluster's in the grid", "[emulator][cluster]") {
  // Of a grid of 4x6x2 in clusters of 2x3x1, the CTA at (3,4,1): cluster (1,1,1), place (1,1,0), rank 1 + 2.
  const std::string body = R"(
    mov.u32 %r0, %ctaid.x; setp.ne.u32 %p1, %r0, 3; mov.u32 %r0, %ctaid.y; setp.ne.or.u32 %p1, %r0, 4, %p1;
    mov.u32 %r0, %ctaid.z; setp.ne.or.u32 %p1, %r0, 1, %p1; setp.ne.or.u32 %p1, %t, 0, %p1; @%p1 bra END;
    ld.param.u64 %out, [out_param];
  )";
  std::string stores = body;
  std::uint32_t at = 0;
  for (const char* name :
       {"%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z",
        "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y",
        "%cluster_nctaid.z", "%cluster_ctarank", "%cluster_nctarank"}) {
    stores += str_cat("mov.u32 %r3, ", name, "; st.global.u32 [%out+", 4 * at++, "], %r3;\n");
  }
  LaunchConfig shape = shape_of(1);
  shape.grid = {4, 6, 2};
  const Outcome o = outcome(text_of(stores + "END: ret;", ".reqnctapercluster 2, 3, 1"), shape, 0);
  CHECK(o.message == "ok");
  CHECK(std::vector<std::uint32_t>(o.out.begin(), o.out.begin() + 14) ==
        std::vector<std::uint32_t>{1, 1, 1, 2, 2, 2, 1, 1, 0, 2, 3, 1, 3, 6});
  // Without a cluster, a CTA is one.
  const Outcome alone = outcome(text_of(stores + "END: ret;", ""), shape, 0);
  CHECK(alone.message == "ok");
  CHECK(std::vector<std::uint32_t>(alone.out.begin(), alone.out.begin() + 14) ==
        std::vector<std::uint32_t>{3, 4, 1, 4, 6, 2, 0, 0, 0, 1, 1, 1, 0, 1});
}

TEST_CASE("CTAs of a cluster load, store and update each other's shared memory", "[emulator][cluster]") {
  for (const std::uint32_t cluster : {1u, 2u, 4u, 8u}) {
    const auto from_next = [&](std::uint32_t cta, std::uint32_t t) {
      return 1000 * (next_of(cta, cluster) % cluster) + t;
    };
    check_passes(str_cat(kFill, kMeet, "ld.shared::cluster.u32 %r3, [%n];", kKeep, kMeet), 8, cluster,
                 from_next);
    check_passes(
        str_cat(kFill, "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
                "ld.shared::cluster.u32 %r3, [%n];", kKeep, "barrier.cluster.arrive; barrier.cluster.wait;"),
        8, cluster, from_next);
    // Through a generic address.
    check_passes(
        str_cat(kFill, kMeet, "cvt.u64.u32 %rd1, %s; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %next;",
                "ld.u32 %r3, [%rd2];", kKeep, kMeet),
        8, cluster, from_next);
    const auto to_next = [&](std::uint32_t cta, std::uint32_t t) {
      return 1000 * ((cta + cluster - 1) % cluster) + t;
    };
    check_passes(str_cat(kMeet, "mad.lo.u32 %r2, %rank, 1000, %t; st.shared::cluster.u32 [%n], %r2;", kMeet,
                         "ld.shared.u32 %r3, [%s];", kKeep),
                 8, cluster, to_next);
    // Every CTA adds to the first one's word.
    check_passes(
        str_cat("mov.u32 %r4, 0; st.shared.u32 [%s], %r4;", kMeet, "mapa.shared::cluster.u32 %r5, %s, 0;",
                "red.relaxed.cluster.shared::cluster.add.u32 [%r5], 3;",
                "atom.relaxed.cluster.shared::cluster.add.u32 %r6, [%r5], 4;", kMeet,
                "ld.shared::cluster.u32 %r3, [%r5];", kKeep, kMeet),
        8, cluster, [&](std::uint32_t, std::uint32_t) { return 7 * cluster; });
  }
  check_passes(str_cat("getctarank.shared::cluster.u32 %r3, %n; getctarank.shared::cluster.u32 %r4, %s;",
                       "mad.lo.u32 %r3, %r4, 10, %r3;", kKeep),
               4, 2, [](std::uint32_t cta, std::uint32_t) { return 10 * (cta % 2) + (cta + 1) % 2; });
}

TEST_CASE("an access to another CTA's shared memory comes neither too early nor too late",
          "[emulator][cluster]") {
  const std::string load = "ld.shared::cluster.u32 %r3, [%n];\n";
  check_fails(
      str_cat(kFill, load, kMeet),
      "of CTA (1,0,0), which may not have begun to run; meet it at barrier.cluster before the first access: ",
      "of CTA (0,0,0), which may not have begun");
  // A barrier of the CTA alone says nothing of another.
  check_fails(str_cat(kFill, "bar.sync 0;", load, kMeet), "which may not have begun");
  check_fails(str_cat(kFill, kMeet, load), "accesses the shared memory of CTA (", "which has exited");
  CHECK_THAT(
      says(str_cat(kFill, kMeet, load)),
      Contains("`ld.shared::cluster.u32 %r3, [%n]`, CTA (") &&
          Contains("which may have exited: nothing orders this access before its end; let all CTAs of the "
                   "cluster meet at barrier.cluster before they exit"));
  // Only one CTA goes early.
  check_fails(str_cat(kFill, kMeet, "setp.eq.u32 %p1, %rank, 1; @%p1 bra END;", load, "END: ret;"),
              "accesses the shared memory of CTA (1,0,0), which may have exited",
              "of CTA (1,0,0), which has exited");
  // The arrival must release, the wait must be there.
  check_fails(str_cat(kFill, kMeet, load, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"),
              "which may have exited");
  check_fails(str_cat(kFill, kMeet, "setp.eq.u32 %p1, %rank, 1; @%p1 bra LAST;", load,
                      "LAST: barrier.cluster.arrive; @%p1 bra END; barrier.cluster.wait; END: ret;"),
              "which may have exited");
  // A relaxed arrival after a fence releases.
  CHECK(says(str_cat(kFill, kMeet, load, "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed;",
                     "barrier.cluster.wait;")) == "ok");
}

TEST_CASE("races between CTAs of a cluster", "[emulator][cluster]") {
  const std::string load = "ld.shared::cluster.u32 %r3, [%n];\n", begun = kMeet;
  check_fails(str_cat(begun, kFill, "bar.sync 0;", load, kMeet),
              "race in shared memory: ", "which nothing has written");
  check_fails(str_cat(kFill, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;", load, kMeet),
              "race in shared memory: reads 4 bytes at shared address");
  CHECK_THAT(says(str_cat(kFill, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;", load, kMeet)),
             Contains("of CTA (0,0,0), which thread (") &&
                 Contains(",0,0) of CTA (0,0,0) wrote at PTX line") &&
                 Contains("bytes into variable 'tile'"));
  check_fails(str_cat(kFill, kMeet, load, kFill, kMeet), "race in shared memory");
  // Two CTAs write one word of a third.
  CHECK_THAT(
      outcome(
          text_of(str_cat(kMeet, "mapa.shared::cluster.u32 %r5, %s, 0; st.shared::cluster.u32 [%r5], %rank;",
                          kMeet),
                  ".reqnctapercluster 3"),
          shape_of(3), 0)
          .message,
      Contains("race in shared memory: writes 4 bytes"));
}

TEST_CASE("addresses of the cluster's shared memory", "[emulator][cluster]") {
  CHECK_THAT(says("mapa.shared::cluster.u32 %r3, %s, 2;"), Contains("rank 2 in a cluster of 2 CTAs"));
  CHECK_THAT(says(str_cat(kFill, kMeet, "ld.shared.u32 %r3, [%n];", kMeet)),
             Contains("which .shared::cta does not reach; say .shared::cluster"));
  // One's own memory by a mapped address is one's own.
  CHECK(says(str_cat(kFill, "mapa.shared::cluster.u32 %r4, %s, %rank; ld.shared.u32 %r3, [%r4];",
                     "ld.shared::cluster.u32 %r3, [%s];")) == "ok");
  CHECK_THAT(says(str_cat(kMeet, "ld.shared::cluster.u32 %r3, [%n+2048];", kMeet)),
             Contains("reads 4 bytes at shared address 0x8") && Contains(" of CTA (0,0,0): ") &&
                 Contains("bytes past the end"));
  CHECK_THAT(says(str_cat(kMeet, "add.u32 %r4, %n, 0x5000000; ld.shared::cluster.u32 %r3, [%r4];", kMeet)),
             Contains("which is of none of the 2 CTAs of the cluster"));
  CHECK_THAT(says(str_cat(kMeet, "ld.shared::cluster.u32 %r3, [%n];", kMeet)),
             Contains("of CTA (0,0,0), which nothing has written"));
  CHECK_THAT(says(str_cat(kMeet, "ld.shared::cluster.u32 %r3, [%n+2];", kMeet)),
             Contains("not a multiple of 4"));
  CHECK_THAT(says("cvt.u64.u32 %rd1, %s; mapa.u64 %rd2, %rd1, 0;"),
             Contains("the address is not in shared memory"));
  CHECK_THAT(parse_failure(text_of("mapa.u32 %r3, %s, 0;")), Contains("a generic address has 64 bits"));
  // isspacep tells one's own from the cluster's.
  check_passes(
      str_cat(
          "cvt.u64.u32 %rd1, %n; cvta.shared::cluster.u64 %rd1, %rd1; isspacep.shared::cluster %p1, %rd1;",
          "isspacep.shared::cta %p2, %rd1; selp.u32 %r3, 2, 0, %p1; selp.u32 %r4, 1, 0, %p2;",
          "or.b32 %r3, %r3, %r4;", kKeep),
      4, 2, [](std::uint32_t, std::uint32_t) { return 2u; });
}

TEST_CASE("barrier.cluster: one arrival a phase, then a wait", "[emulator][cluster]") {
  CHECK_THAT(says("barrier.cluster.arrive; barrier.cluster.arrive;"),
             Contains("arrives at barrier.cluster a second time; barrier.cluster.wait comes between"));
  CHECK_THAT(says("barrier.cluster.wait;"), Contains("waits at barrier.cluster without having arrived"));
  // Work between the two, many phases, lanes apart.
  check_passes(
      str_cat("mov.u32 %r3, 0; mov.u32 %r7, 0; L: barrier.cluster.arrive; add.u32 %r3, %r3, 1;",
              "barrier.cluster.wait; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5; @%p1 bra L;", kKeep),
      8, 4, [](std::uint32_t, std::uint32_t) { return 5u; });
  check_passes(str_cat("mov.u32 %r3, 1; and.b32 %r4, %t, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra EVEN;",
                       "barrier.cluster.arrive; barrier.cluster.wait; bra END;",
                       "EVEN: barrier.cluster.arrive; barrier.cluster.wait; END:", kKeep),
               4, 2, [](std::uint32_t, std::uint32_t) { return 1u; });
  // Threads that have exited do not hold it up.
  check_passes(str_cat("mov.u32 %r3, 6;", kKeep, "setp.ge.u32 %p1, %t, 32; @%p1 ret;", kMeet), 4, 2,
               [](std::uint32_t, std::uint32_t) { return 6u; });
  const std::string stuck = says(
      "setp.eq.u32 %p1, %rank, 1; @%p1 bar.sync 1, 96; @!%p1 barrier.cluster.arrive;"
      "@!%p1 barrier.cluster.wait;");
  CHECK_THAT(
      stuck,
      Contains("the cluster of CTA (0,0,0): deadlock, every live thread waits; CTA (0,0,0) warp 0 lanes 0-31 "
               "at PTX line") &&
          Contains("`@!%p1 barrier.cluster.wait` for the threads of the cluster that have not arrived at "
                   "barrier.cluster") &&
          Contains("CTA (1,0,0) warp 1 lanes 0-31 at PTX line") && Contains("`@%p1 bar.sync 1, 96`"));
}

TEST_CASE("launches of clusters", "[emulator][cluster]") {
  const auto refused = [](std::string_view directives, const LaunchConfig& shape,
                          std::string_view target = "sm_90") {
    Memory memory;
    auto program =
        Program::parse(module_of(str_cat(".visible .entry k() ", directives, " { ret; }"), target));
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    return std::string(launch(**program, "k", shape, memory).status().message());
  };
  CHECK(refused(".reqnctapercluster 2", shape_of(4)) == "");
  CHECK(refused(".explicitcluster .reqnctapercluster 2, 1, 1", shape_of(4, 2)) == "");
  CHECK(refused("", shape_of(16, 8)) == "");
  CHECK(refused(".reqnctapercluster 2", shape_of(3)) ==
        "launch of kernel 'k': grid (3,1,1); each extent must be a multiple of the cluster's, (2,1,1)");
  CHECK(refused(".reqnctapercluster 2", shape_of(4, 4)) ==
        "launch of kernel 'k': cluster (4,1,1); its .reqnctapercluster requires (2,1,1)");
  CHECK(refused(".explicitcluster", shape_of(4)) ==
        "launch of kernel 'k': its .explicitcluster requires a cluster; give LaunchConfig::cluster");
  CHECK(
      refused("", shape_of(16, 16)) ==
      "launch of kernel 'k': cluster (16,1,1); allowed are 1 to 8 CTAs, up to 16 with non_portable_cluster");
  LaunchConfig large = shape_of(32, 16);
  large.non_portable_cluster = true;
  CHECK(refused("", large) == "");
  large.cluster = {32};
  CHECK_THAT(refused("", large), Contains("cluster (32,1,1); allowed are 1 to 16 CTAs"));
  CHECK_THAT(refused(".maxclusterrank 4", shape_of(8, 8)),
             Contains("allowed are 1 to 4 CTAs, its .maxclusterrank"));
  CHECK_THAT(refused("", shape_of(2, 2), "sm_80"), Contains("clusters need sm_90, the device is sm_80"));
  LaunchConfig empty = shape_of(4);
  empty.cluster = {2, 0, 1};
  CHECK_THAT(refused("", empty), Contains("cluster (2,0,1); allowed"));
  const auto failure_of = [](std::string_view directive) {
    return parse_failure(module_of(str_cat(".visible .entry k() ", directive, " { ret; }")));
  };
  CHECK_THAT(failure_of(".reqnctapercluster 4, 4, 2"),
             Contains(".reqnctapercluster must be of 1 to 16 CTAs"));
  CHECK_THAT(failure_of(".maxclusterrank 17"), Contains(".maxclusterrank must be from 1 to 16"));
  CHECK_THAT(failure_of(".blocksareclusters"), Contains(".blocksareclusters is not emulated"));
}

// ---- mbarriers of other CTAs ----

namespace {

// An mbarrier for so many arrivals, made ready and seen by the cluster.
std::string ready(int arrivals, std::string_view meet = kMeet) {
  return str_cat("@%p0 mbarrier.init.shared.b64 [bars], ", arrivals,
                 "; @%p0 fence.mbarrier_init.release.cluster;\n", meet,
                 "mov.u32 %r8, bars; mapa.shared::cluster.u32 %r9, %r8, %next;\n");
}
constexpr char kWait[] =
    "W0: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bars], 0; @!%p1 bra W0;\n";
constexpr char kRelaxedMeet[] = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n";

}  // namespace

TEST_CASE("arrivals at another CTA's mbarrier order what came before them", "[emulator][cluster]") {
  const std::string write = "mad.lo.u32 %r2, %rank, 1000, %t; st.shared::cluster.u32 [%n], %r2;\n";
  const std::string read = str_cat("ld.shared.u32 %r3, [%s];", kKeep);
  const std::string arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n";
  const auto from_before = [](std::uint32_t cta, std::uint32_t t) { return 1000 * ((cta + 1) % 2) + t; };
  for (const char* meet : {kMeet, kRelaxedMeet}) {
    check_passes(str_cat(ready(64, meet), write, arrive, kWait, read, kMeet), 4, 2, from_before);
  }
  // Without the wait, or with a relaxed arrival, nothing is ordered.
  check_fails(str_cat(ready(64), write, arrive, read, kMeet), "race in shared memory",
              "which nothing has written");
  check_fails(str_cat(ready(64), write, "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r9];",
                      kWait, read, kMeet),
              "race in shared memory");
  // An arrival is an access: its CTA must live.
  check_fails(str_cat(ready(1), "setp.eq.u32 %p3, %rank, 0; @%p3 bra END; @%p0 ", arrive, "END: ret;"),
              "accesses the shared memory of CTA (0,0,0), which may have exited",
              "of CTA (0,0,0), which has exited");
  // One that is waited for is in the past of who waits.
  CHECK(says(str_cat(ready(64), "setp.eq.u32 %p3, %rank, 0; @%p3 bra WAIT;", arrive, "bra END; WAIT:", kWait,
                     "END: ret;")) == "ok");
}

TEST_CASE("mbarriers of other CTAs that are not ready", "[emulator][cluster]") {
  const std::string arrive = "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n";
  const std::string init = "@%p0 mbarrier.init.shared.b64 [bars], 1;\n";
  const std::string address = "mov.u32 %r8, bars; mapa.shared::cluster.u32 %r9, %r8, %next;\n";
  CHECK_THAT(says(str_cat(kMeet, address, arrive, kMeet)),
             Contains("of CTA (1,0,0), where no mbarrier has been initialised"));
  CHECK_THAT(says(str_cat(init, address, arrive, kMeet)), Contains("which may not have begun to run"));
  // Relaxed arrivals carry no initialisation without fence.mbarrier_init.
  CHECK_THAT(says(str_cat(init, kRelaxedMeet, address, arrive, kMeet)),
             Contains("race in shared memory") && Contains("which thread (0,0,0) of CTA (1,0,0) wrote"));
  CHECK_THAT(says(str_cat(init, "bar.sync 0; setp.eq.u32 %p3, %t, 1;",
                          "@%p3 fence.mbarrier_init.release.cluster;", kRelaxedMeet, address, arrive, kMeet)),
             Contains("race in shared memory") && Contains(" wrote at PTX line 14 `@%p0 mbarrier.init"));
  // The fence comes before the arrival.
  CHECK_THAT(says(str_cat(init, "barrier.cluster.arrive.relaxed; @%p0 fence.mbarrier_init.release.cluster;",
                          "barrier.cluster.wait;", address, arrive, kMeet)),
             Contains("race in shared memory"));
  CHECK_THAT(says(str_cat(ready(2), "@%p0 mbarrier.arrive.shared::cluster.b64 _, [%r9], 3;", kMeet)),
             Contains("arrives 3 times at phase 0 (parity 0) of the mbarrier at shared address 0x400 of CTA "
                      "(1,0,0), which "
                      "lacks 2 of 2 arrivals"));
  // Tests are for one's own.
  CHECK_THAT(says(str_cat(ready(1), "mbarrier.test_wait.parity.shared.b64 %p1, [%r9], 0;", kMeet)),
             Contains("which .shared::cta does not reach"));
  CHECK_THAT(parse_failure(text_of("mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%r9], 0;")),
             Contains("this is for an mbarrier of the CTA's own"));
  CHECK_THAT(parse_failure(text_of("mbarrier.arrive.shared::cluster.b64 %rd1, [%r9];")),
             Contains("an arrival in .shared::cluster returns no state; write _"));
  const std::string stuck = says(str_cat(ready(2), arrive, kWait, kMeet));
  CHECK_THAT(stuck,
             Contains("deadlock") && Contains("which lacks 1 of 2 arrivals") && Contains("of CTA (0,0,0)"));
}

// ---- copies between CTAs ----

#define DSMEM "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"

TEST_CASE("a CTA copies its shared memory into another", "[emulator][cluster][async]") {
  // bars+8 belongs to nobody; tile+512 receives.
  const std::string expect = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 256;\n";
  const std::string filled =
      str_cat(kFill, "fence.proxy.async; bar.sync 0; mov.u32 %r10, tile; mapa.shared::cluster.u32 %r11,",
              " %r10, %next;\n");
  const std::string push = "@%p0 " DSMEM "[%r11+512], [tile], 256, [%r9];\n";
  const std::string read = str_cat("ld.shared.u32 %r3, [%s+512];", kKeep);
  const auto from_before = [](std::uint32_t cta, std::uint32_t t) { return 1000 * ((cta + 1) % 2) + t; };
  check_passes(str_cat(ready(1), filled, expect, push, kWait, read, kMeet), 4, 2, from_before);
  check_passes(str_cat(ready(1), filled, push, expect, kWait, read, kMeet), 4, 2, from_before);
  check_fails(str_cat(ready(1), filled, expect, push, read, kWait, kMeet),
              "is still to write; wait for it first", "which nothing has written");
  // The source may not change until somebody has waited.
  check_fails(str_cat(ready(1), filled, expect, push, "bar.sync 0;", kFill, kWait, kMeet),
              "may still read; let whoever waits for its mbarrier say so first",
              "which an asynchronous copy read");
  // Once the receiver has waited and said so, it may.
  CHECK(says(str_cat(ready(1), filled, expect, push, kWait, kMeet, kFill, kMeet)) == "ok");
  CHECK_THAT(says(str_cat(ready(1), kFill,
                          "bar.sync 0; mov.u32 %r10, tile; mapa.shared::cluster.u32 %r11, %r10, %next;",
                          expect, push, kWait, kMeet)),
             Contains("with no fence.proxy.async between"));
  // The mbarrier of the sender.
  CHECK_THAT(
      says(str_cat(ready(1), filled, expect, "@%p0 " DSMEM "[%r11+512], [tile], 256, [bars];", kWait, kMeet)),
      Contains("writes the shared memory of CTA (0,0,0) and completes phase 0") &&
          Contains("the mbarrier of a copy lies in the CTA that receives it"));
  CHECK_THAT(says(str_cat(ready(1), filled, "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 272;", push,
                          kWait, kMeet)),
             Contains("deadlock") && Contains("which lacks 0 of 1 arrivals and 16 bytes"));
  // Who sends or receives may not go before the copy has landed.
  CHECK_THAT(says(str_cat(ready(1), filled, expect, push, kMeet)),
             Contains("the CTA (") && Contains("exits while this copy is still to"));
}

TEST_CASE("a bulk copy to several CTAs", "[emulator][cluster][async]") {
  const std::string expect = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 256;\n";
  const std::string read = str_cat("ld.shared.u32 %r3, [%s];", kKeep);
  const std::string load = "setp.eq.and.u32 %p3, %rank, 0, %p0; mov.u16 %h1, 3; @%p3 " BULK
                           ".multicast::cluster [tile], [%in], 256, [bars], %h1;\n";
  check_passes(str_cat(ready(1), expect, load, kWait, read, kMeet), 4, 2,
               [](std::uint32_t, std::uint32_t t) { return 100 + t; });
  // Only to the other one.
  check_passes(str_cat(ready(1),
                       "setp.eq.and.u32 %p3, %rank, 0, %p0; mov.u16 %h1, 2; @%p3 " BULK
                       ".multicast::cluster [tile], [%in], 256, [bars], %h1;",
                       "mov.u32 %r3, 7; setp.eq.u32 %p4, %rank, 0; @%p4 bra END;", expect, kWait,
                       "ld.shared.u32 %r3, [%s]; END:", kKeep, kMeet),
               4, 2, [](std::uint32_t cta, std::uint32_t t) { return cta % 2 == 0 ? 7 : 100 + t; });
  const auto with_mask = [&](std::string_view mask) {
    return says(str_cat(ready(1), expect, "mov.u16 %h1, ", mask,
                        "; @%p0 " BULK ".multicast::cluster [tile], [%in], 256, [bars], %h1;", kMeet));
  };
  CHECK_THAT(with_mask("4"), Contains("copies to the CTAs of mask 0x4; the cluster has ranks 0 to 1"));
  CHECK_THAT(with_mask("0"), Contains("copies to the CTAs of mask 0x0"));
  // One that nobody there expects.
  CHECK_THAT(
      says(str_cat(ready(1), load, "setp.eq.u32 %p4, %rank, 1; @%p4 bra END;", expect, kWait, "END: ret;")),
      Contains("exits while this copy is still to write its shared memory"));
  CHECK_THAT(
      says(str_cat(
          "@%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;",
          expect, load, kWait, kMeet)),
      Contains("which may not have begun to run"));
}

// ---- through the builder ----

namespace {

struct Args {
  DevicePtr<u32> out;
  static constexpr auto fields() { return std::tuple(ptxgen::output("out", &Args::out, nullptr)); }
};

// Each CTA sends its number and thread to the next one and waits for what comes.
std::string ring_kernel(bool close) {
  KernelBuilder k("k", {{90, false}, {8, 7}});
  k.declare_parameters<Args>();
  k.cluster(4);
  k.maxntid(kThreads);
  const auto tile = k.shared<u32, 16>(kThreads);
  const auto full = k.shared<MBarrier>(1);
  k.if_(k.tid_x() == 0, [&] {
    mbarrier_init(full, kThreads);
    k.fence_mbarrier_init_release_cluster();
  });
  k.barrier_cluster_arrive_relaxed_aligned();
  k.barrier_cluster_wait_aligned();
  const Reg<u32> next = (k.cluster_ctarank() + 1) & 3;
  const ClusterSharedPtr<u32> theirs = mapa(tile, next) + k.tid_x();
  st_shared_cluster(theirs, k.ctaid_x() * 1000 + k.tid_x());
  mbarrier_arrive(mapa(full, next));
  k.mbarrier_wait_parity_cluster(full, 0);
  const Reg<u32> got = ld_shared(tile + k.tid_x());
  st_global(k.param(&Args::out) + (k.ctaid_x() * kThreads + k.tid_x()), got);
  if (close) {
    k.barrier_cluster_arrive_aligned();
    k.barrier_cluster_wait_aligned();
  }
  const auto kernel = k.finish();
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  return print_ptx(*kernel);
}

}  // namespace

TEST_CASE("a ring of CTAs, written with the builder", "[emulator][cluster]") {
  for (const bool close : {true, false}) {  // who waits for the arrival of the last visitor may go
    const std::string ptx = ring_kernel(close);
    CHECK_THAT(ptx,
               Contains(".explicitcluster\n.reqnctapercluster 4, 1, 1\n") && Contains(".target sm_90\n"));
    const auto program = parsed(ptx);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Memory memory;
      const std::uint64_t out = upload(memory, std::vector<std::uint32_t>(8 * kThreads), "out");
      const auto params = params_of(out);
      Options options;
      options.seed = seed;
      LaunchConfig config = shape_of(8);
      config.params = params;
      run(*program, "k", config, memory, options);
      const std::vector<std::uint32_t> got = download<std::uint32_t>(memory, out, 8 * kThreads);
      for (std::uint32_t i = 0; i < got.size(); ++i) {
        const std::uint32_t cta = i / kThreads, before = cta / 4 * 4 + (cta + 3) % 4;
        REQUIRE(got[i] == 1000 * before + i % kThreads);
      }
    }
  }
}

}  // namespace ptxgen::emulator
